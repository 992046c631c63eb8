# SPDX-License-Identifier: Apache-2.0
"""Functions of torchvision's detectors that look at data while they are traced, replaced by others that do not."""

from __future__ import annotations

import sys

import torch
from torch._higher_order_ops.map import map as torch_map


def batched_nms(boxes, scores, idxs, iou_threshold):
    """batched_nms, whichever number of boxes there is: those of a class lie beside those of others"""
    offsets = idxs.to(boxes) * (boxes.max() + 1)
    return torch.ops.torchvision.nms(boxes + offsets[:, None], scores, iou_threshold)


def length(x):
    """len(x); that of a tensor may depend on data"""
    return x.shape[0] if isinstance(x, torch.Tensor) else len(x)


def paste_masks_in_image(masks, boxes, img_shape, padding=1):
    """Masks resized to their boxes, in pictures of zeros: all of them at once, as products with weights of each pixel"""
    heads = sys.modules["torchvision.models.detection.roi_heads"]
    masks, scale = heads.expand_masks(masks, padding)
    boxes = heads.expand_boxes(boxes, scale).to(torch.int64)
    rows, columns = (_weights(boxes[:, axis], boxes[:, axis + 2], extent, masks.shape[-1])
                     for axis, extent in ((1, img_shape[0]), (0, img_shape[1])))
    return (rows @ masks[:, 0] @ columns.transpose(1, 2))[:, None]


def _weights(low, high, extent, size):
    """How much of each of `size` elements a pixel has, by linear interpolation between low and high: [n, extent, size]"""
    pixels = torch.arange(extent)[None, :]
    count = (high - low + 1).clamp(min=1)[:, None]
    inside = (pixels >= low[:, None]) & (pixels <= high[:, None])
    places = (pixels - low[:, None] + 0.5) * (size / count) - 0.5
    distances = (places.clamp(0, size - 1)[:, :, None] - torch.arange(size)).abs()
    return (1 - distances).clamp(min=0) * inside[:, :, None]


def heatmaps_to_keypoints(maps, rois):
    """Where each heat map, resized to its box, is highest: one box after the other, in the extents of the largest"""
    corners, sizes = rois[:, :2], (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    counts = sizes.ceil()
    width, height = (_extent(counts[:, axis]) for axis in (0, 1))

    def highest(box, x, y):
        of_box, count = box
        columns, rows = _cubic_weights(count[0], x, of_box.shape[-1]), _cubic_weights(count[1], y, of_box.shape[-2])
        outside = (y >= count[1])[:, None] | (x >= count[0])
        resized = (rows @ of_box @ columns.T).masked_fill(outside, -torch.inf).flatten(1)
        place = resized.argmax(1)
        return place, torch.gather(resized, 1, place[:, None])[:, 0]

    place, scores = torch_map(highest, (maps, counts), torch.arange(width), torch.arange(height))
    pixel = torch.stack([place % width, place // width], 2)
    points = (pixel + 0.5) * (sizes / counts)[:, None] + corners[:, None]
    return torch.cat([points, torch.ones_like(points[:, :, :1])], 2), scores


def _extent(counts):
    """The largest of `counts`, a size that depends on data: at least 1"""
    extent = torch.cat([counts, torch.ones(1)]).max().to(torch.int64).item()
    torch._check(extent >= 1)
    return extent


def _cubic_weights(count, pixels, size):
    """How much of each of `size` elements some of `count` pixels have, by cubic interpolation: [pixels, size]"""
    places = (pixels + 0.5) * (size / count) - 0.5
    below = places.floor()
    weights = 0
    for tap in (-1, 0, 1, 2):
        distance = (places - below - tap).abs()
        near = (1.25 * distance - 2.25) * distance * distance + 1
        far = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
        element = (below + tap).clamp(0, size - 1)
        chosen = element[:, None] == torch.arange(size)
        weights = weights + torch.where(distance <= 1, near, far)[:, None] * chosen
    return weights


# What replaces names of modules, which calls of torch's functions do not show.
NAMES = {
    ("torchvision.ops.boxes", "batched_nms"): batched_nms,
    ("torchvision.ops.poolers", "len"): length,
    ("torchvision.models.detection.roi_heads", "heatmaps_to_keypoints"): heatmaps_to_keypoints,
    ("torchvision.models.detection.transform", "paste_masks_in_image"): paste_masks_in_image,
}
