# SPDX-License-Identifier: Apache-2.0
"""Functions of torchvision's detectors that look at data while they are traced, replaced by others that do not."""

from __future__ import annotations

import sys

import torch


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


# What replaces names of modules, which calls of torch's functions do not show.
NAMES = {
    ("torchvision.ops.boxes", "batched_nms"): batched_nms,
    ("torchvision.ops.poolers", "len"): length,
    ("torchvision.models.detection.transform", "paste_masks_in_image"): paste_masks_in_image,
}
