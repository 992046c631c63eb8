# SPDX-License-Identifier: Apache-2.0
"""The families of torchvision and timm, by the member of each that vision.tsv names: the smallest, and the smallest
picture of 64, 96, 128 ... pixels or its own size that it takes."""

from __future__ import annotations

import csv
import pathlib

from compare import MOST_ERRORS
from torch import nn, randn

NEAR = 2e-3  # of boxes relative to the picture, of scores and of masks in the mean
TABLE = pathlib.Path(__file__).with_name("vision.tsv")


class Detector(nn.Module):
    """A detector of torchvision for one picture."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        found = self.model([image])[0]
        more = [name for name in ("masks", "keypoints") if name in found]
        return tuple(found[name] for name in ("boxes", "scores", "labels", *more))

    @staticmethod
    def as_near(got, expected, exact):
        """Do about as many detections differ from those in f64 as PyTorch's do? Scores that are nearly alike, as those
        of random weights are, decide which boxes are found."""
        return _unlike(got, exact) <= MOST_ERRORS * max(_unlike(expected, exact), 1)


def _unlike(found, others):
    """How many detections have none of the same label, box, score, and mask or keypoints among the others"""
    boxes, scores, labels, *more = (x.double() for x in found)
    other_boxes, other_scores, other_labels, *other_more = (x.double() for x in others)
    like = labels[:, None] == other_labels
    like &= (boxes[:, None] - other_boxes).abs().amax(2) <= NEAR * other_boxes.abs().max()
    like &= (scores[:, None] - other_scores).abs() <= NEAR
    for x, other in zip(more, other_more):  # masks, of at most 1, or places
        like &= (x[:, None] - other).abs().flatten(2).mean(2) <= NEAR * other.abs().max().clamp(min=1)
    return int((~like.any(1)).sum())


class Flow(nn.Module):
    """An estimator of optical flow, with its last estimate alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, first, second):
        return self.model(first, second, num_flow_updates=2)[-1]


def architectures(collection):
    """(family, name) of each; those that the table lacks have no name"""
    listed = {row["family"]: row["model"] for row in _rows(collection)}
    missing = sorted(_families(collection) - set(listed))
    return list(listed.items()) + [(family, "") for family in missing]


def _rows(collection):
    with TABLE.open(encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines, delimiter="\t") if row["collection"] == collection]


def _families(collection):
    if collection == "timm":
        import timm

        return set(timm.list_modules())
    from torchvision import models

    builders = map(models.get_model_builder, models.list_models())
    return {builder.__module__.removeprefix("torchvision.models.") for builder in builders}


def make(collection, family, name):
    """The module of an architecture, its arguments and keyword arguments."""
    size = next(int(row["size"]) for row in _rows(collection) if row["model"] == name)
    if collection == "timm":
        import timm

        return timm.create_model(name, pretrained=False), (randn(1, 3, size, size),), {}
    return _torchvision(family, name, size)


def _torchvision(family, name, size):
    from torchvision import models

    kind = family.split(".")[0]
    backbone = {"weights_backbone": None} if kind in ("detection", "segmentation") else {}
    model = models.get_model_builder(name)(weights=None, **backbone)
    if kind == "detection":
        return Detector(model), (randn(3, size, size),), {}
    if kind == "optical_flow":
        return Flow(model), (randn(1, 3, size, size), randn(1, 3, size, size)), {}
    frames = (16,) if kind == "video" else ()
    return model, (randn(1, 3, *frames, size, size),), {}
