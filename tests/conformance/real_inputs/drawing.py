# SPDX-License-Identifier: Apache-2.0
"""Text drawn by ImageMagick, as arrays."""

import functools
import pathlib
import re
import shutil
import subprocess

import numpy as np

from case import Missing, run

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")  # Debian's fonts-dejavu-core.


@functools.cache
def imagemagick():
    """The program that draws: `magick` of version 7 or `convert` of version 6."""
    for name in ("magick", "convert", "/usr/bin/convert"):
        program = shutil.which(name)
        if not program:
            continue
        version = subprocess.run([program, "-version"], capture_output=True, text=True).stdout
        if "ImageMagick" in version:
            return program
    raise Missing("ImageMagick is not installed")


def font(name):
    path = FONTS / f"DejaVu{name}.ttf"
    if not path.is_file():
        raise Missing("the package fonts-dejavu-core is not installed")
    return str(path)


def decode_ppm(data):
    """u8 [height, width, 3] of a binary PPM with one byte a sample."""
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", data)
    width, height = int(header[1]), int(header[2])
    return np.frombuffer(data, np.uint8, width * height * 3, header.end()).reshape(height, width, 3)


def plain(text):
    """`text` as ImageMagick draws it, which would put values for %x and read the file of @x."""
    return text.replace("\\", "\\\\").replace("%", "%%").replace("@", "\\@")


def page(width, height, lines, paper="white"):
    """A picture with lines of text, each (x, y of its top, point size, colour, font, text)."""
    command = [imagemagick(), "-size", f"{width}x{height}", f"xc:{paper}", "-gravity", "NorthWest"]
    for x, y, size, colour, face, text in lines:
        command += ["-font", font(face), "-pointsize", str(size), "-fill", colour]
        command += ["-annotate", f"+{x}+{y}", plain(text)]
    return decode_ppm(run([*command, "-depth", "8", "ppm:-"]))


def strip(text, height, face="Sans", colour="black", paper="white", turned=False):
    """One line of text, cropped close and brought to `height`, its width by aspect."""
    command = [imagemagick(), "-background", paper, "-fill", colour, "-font", font(face)]
    command += ["-pointsize", "40", f"label:{plain(text)}", "-trim", "+repage"]
    command += ["-bordercolor", paper, "-border", "3x5", "-rotate", "180" if turned else "0"]
    command += ["-filter", "triangle", "-resize", f"x{height}"]
    return decode_ppm(run([*command, "-depth", "8", "ppm:-"]))


def as_input(picture, width=None):
    """f32 [3, h, width] in -1 .. 1, blue first as PP-OCR wants it, zeros right of the picture."""
    planes = picture[:, :, ::-1].transpose(2, 0, 1).astype(np.float32) / np.float32(127.5) - 1
    if width is None:
        return planes
    if planes.shape[2] > width:
        raise ValueError(f"a picture {planes.shape[2]} wide does not fit {width}")
    return np.pad(planes, ((0, 0), (0, 0), (0, width - planes.shape[2])))
