#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the .cu files of this folder with NVRTC: NAME.sm_80.ptx and NAME.sm_100.ptx, the two dialects.

Needs the packages nvidia-cuda-nvrtc and nvidia-cuda-runtime 13.5 in the environment of the Python that runs it.
"""
import argparse
import ctypes
import pathlib
import site
import sys

HERE = pathlib.Path(__file__).resolve().parent


def toolkit():
    for folder in site.getsitepackages():
        found = pathlib.Path(folder) / "nvidia" / "cu13"
        if (found / "lib" / "libnvrtc.so.13").exists():
            return found
    sys.exit("no NVRTC here: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime")


def compile_ptx(nvrtc, source, name, options):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    texts = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    result = nvrtc.nvrtcCompileProgram(program, len(options), texts)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if result != 0:
        sys.exit(f"{name}: {log.value.decode()}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", type=pathlib.Path, help="default: all of this folder")
    parser.add_argument("--arch", nargs="+", default=["80", "100"])
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    args = parser.parse_args()
    folder = toolkit()
    nvrtc = ctypes.CDLL(str(folder / "lib" / "libnvrtc.so.13"))
    for source in args.sources or sorted(HERE.glob("*.cu")):
        for arch in args.arch:
            options = [f"--gpu-architecture=compute_{arch}", f"--include-path={folder}/include", "-default-device"]
            ptx = compile_ptx(nvrtc, source.read_text(), source.name, options)
            (args.out / f"{source.stem}.sm_{arch}.ptx").write_text(ptx)


if __name__ == "__main__":
    main()
