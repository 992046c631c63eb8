// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above first.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <fstream>
#include <iterator>

#include "absl/functional/function_ref.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/safetensors.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/deflate.h"
#include "tests/support/temp_folder.h"

namespace forge::fuzz {
namespace {

// What `write` stores in the file that it is given; empty where it fails.
std::string Written(absl::FunctionRef<absl::Status(const std::filesystem::path& file)> write) {
  const TempFolder folder;
  if (!write(folder / "seed").ok()) return "";
  std::ifstream in(folder / "seed", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// ---- npy, npz ---------------------------------------------------------------------------------

std::string NpyOf(DType dtype, std::vector<int64_t> shape) {
  ir::HostValue value = *ir::HostValue::Zeros(dtype, shape);
  for (int64_t i = 0; i < value.elements(); ++i) value.Set(i, static_cast<double>(i % 2));
  return Written([&](const auto& file) { return WriteNpy(file, value); });
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

template <class T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}

struct Entry {
  std::string name, content, packed;
  uint16_t method;
  uint32_t checksum, offset;
};

// What a local and a central header have in common.
void PutMiddle(std::string& out, const Entry& e) {
  Put<uint16_t>(out, 20);  // version
  Put<uint16_t>(out, 0);   // flags
  Put(out, e.method);
  Put<uint32_t>(out, 0);  // time and date
  Put(out, e.checksum);
  Put(out, static_cast<uint32_t>(e.packed.size()));
  Put(out, static_cast<uint32_t>(e.content.size()));
  Put(out, static_cast<uint16_t>(e.name.size()));
  Put<uint16_t>(out, 0);  // extra
}

// source: APPNOTE.TXT, 4.3
std::string Zip(std::vector<Entry> entries) {
  std::string out, directory;
  for (Entry& e : entries) {
    e.packed = e.method == 0 ? e.content : Deflated(e.content);
    e.checksum = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(e.content.data()), e.content.size()));
    e.offset = static_cast<uint32_t>(out.size());
    Put<uint32_t>(out, 0x04034b50);
    PutMiddle(out, e);
    out += e.name + e.packed;
    Put<uint32_t>(directory, 0x02014b50);
    Put<uint16_t>(directory, 20);
    PutMiddle(directory, e);
    Put<uint64_t>(directory, 0);  // comment, disk, attributes
    Put<uint16_t>(directory, 0);
    Put(directory, e.offset);
    directory += e.name;
  }
  const auto offset = static_cast<uint32_t>(out.size());
  out += directory;
  Put<uint32_t>(out, 0x06054b50);
  Put<uint32_t>(out, 0);  // disks
  Put(out, static_cast<uint16_t>(entries.size()));
  Put(out, static_cast<uint16_t>(entries.size()));
  Put(out, static_cast<uint32_t>(directory.size()));
  Put(out, offset);
  Put<uint16_t>(out, 0);  // comment
  return out;
}

// ---- idx, safetensors --------------------------------------------------------------------------

std::string IdxOf(char type, int width, const std::vector<uint8_t>& shape) {
  std::string out = {0, 0, type, static_cast<char>(shape.size())};
  size_t bytes = static_cast<size_t>(width);
  for (const uint8_t extent : shape) {
    out += std::string(3, '\0') + static_cast<char>(extent);
    bytes *= extent;
  }
  return out + std::string(bytes, '\1');
}

std::string SafetensorsOf(const Safetensors& content) {
  return Written([&](const auto& file) { return WriteSafetensors(file, content); });
}

// ---- pictures ---------------------------------------------------------------------------------

struct Png {
  int depth, kind, interlace;
};

std::string PngOf(const Png& p) {
  constexpr png_uint_32 kSide = 9;
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp to, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, kSide, kSide, p.depth, p.kind, p.interlace, 0, 0);
  png_color palette[2] = {{1, 2, 3}, {4, 5, 6}};
  if (p.kind == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 2);
  png_write_info(png, info);
  std::vector<png_byte> row(png_get_rowbytes(png, info), 0x11);
  if (p.kind == PNG_COLOR_TYPE_PALETTE) row.assign(row.size(), 0);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < kSide; ++y) png_write_row(png, row.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string JpegOf(int channels, bool progressive) {
  constexpr JDIMENSION kSide = 17;
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;  // NOLINT: the library's type
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = jpeg.image_height = kSide;
  jpeg.input_components = channels;
  jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 50, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  // EXIF with one entry: turned by a quarter.
  static constexpr JOCTET kExif[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                                     0x12, 1,   3,   0,   1, 0, 0,   0,   6,  0, 0, 0, 0, 0, 0, 0};
  jpeg_write_marker(&jpeg, JPEG_APP0 + 1, kExif, sizeof(kExif));
  std::vector<JSAMPLE> row(kSide * static_cast<size_t>(channels));
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * 37);
  JSAMPROW rows[] = {row.data()};
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&jpeg);
  free(out);  // NOLINT: the library allocates with malloc
  return file;
}

}  // namespace

Files NpySeeds() {
  Files out;
  for (const DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kU32,
                            DType::kI64, DType::kF16, DType::kF32, DType::kF64, DType::kC64})
    out.push_back(NpyOf(dtype, {2, 3}));
  const std::string f32 = NpyOf(DType::kF32, {2, 3, 2}), scalar = NpyOf(DType::kI32, {});
  out.insert(out.end(), {f32, scalar, NpyOf(DType::kF32, {0, 4}), NpyOf(DType::kF32, {5})});
  out.push_back(Replaced(f32, "'<f4'", "'>f4'"));
  out.push_back(Replaced(f32, "'fortran_order': False", "'fortran_order': True "));
  const Entry a{"a.npy", f32, "", 0, 0, 0}, b{"b.npy", scalar, "", 8, 0, 0};
  out.push_back(Zip({a}));
  out.push_back(Zip({b}));
  out.push_back(Zip({a, b}));
  return out;
}

Files IdxSeeds() {
  Files out;
  const std::pair<char, int> types[] = {{0x08, 1}, {0x09, 1}, {0x0B, 2},
                                        {0x0C, 4}, {0x0D, 4}, {0x0E, 8}};
  for (const auto& [type, width] : types) out.push_back(IdxOf(type, width, {3, 2, 2}));
  out.push_back(IdxOf(0x08, 1, {0}));
  out.push_back(Gzipped(out.front()));
  out.push_back(Gzipped(out.front()) + Gzipped(""));
  return out;
}

Files SafetensorsSeeds() {
  Safetensors all{.tensors = {}, .metadata = {{"format", "pt"}}};
  for (const DType t : {DType::kBool, DType::kU8, DType::kI16, DType::kBF16, DType::kF16,
                        DType::kF32, DType::kI64, DType::kF64, DType::kF8E4M3})
    all.tensors.emplace_back(std::string(Name(t)),
                             *ir::HostValue::Zeros(t, std::vector<int64_t>{2, 3}));
  const Safetensors scalar{.tensors = {{"a", ir::HostValue::Scalar(DType::kF32, 1.0)}}};
  return {SafetensorsOf({}), SafetensorsOf(scalar), SafetensorsOf(all)};
}

Files ImageSeeds() {
  Files out;
  for (const int interlace : {0, 1}) {
    for (const int depth : {1, 2, 4, 8, 16}) out.push_back(PngOf({depth, 0, interlace}));
    for (const int depth : {1, 4, 8}) out.push_back(PngOf({depth, 3, interlace}));
    for (const int kind : {2, 4, 6}) out.push_back(PngOf({8, kind, interlace}));
    out.push_back(PngOf({16, 6, interlace}));
  }
  for (const int channels : {1, 3, 4})
    for (const bool progressive : {false, true}) out.push_back(JpegOf(channels, progressive));
  return out;
}

}  // namespace forge::fuzz
