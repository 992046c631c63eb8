// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "formats/images/image_codecs.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;

class PngDecoder {
 public:
  explicit PngDecoder(const Bytes& file) : file_(file) {}
  PngDecoder(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // Reads up to the first row and asks for 8-bit grey or RGB. False: see message().
  bool Open() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &OnError, &OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return Fail("no memory");
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    // Above that limit the library only warns, and allocates what a chunk claims to hold: let it
    // skip every chunk that is of no use here (-1: all that it lists).
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_read_fn(png_, this, &OnRead);
    png_read_info(png_, info_);
    if (png_get_bit_depth(png_, info_) == 16) png_set_strip_16(png_);
    png_set_expand(png_);
    png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  // Fills `out`: height rows of width * channels bytes.
  bool ReadRows(uint8_t* out) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const size_t stride = png_get_rowbytes(png_, info_);
    const uint64_t rows = height();
    for (int pass = 0; pass < passes_; ++pass)
      for (uint64_t row = 0; row < rows; ++row) png_read_row(png_, out + row * stride, nullptr);
    png_read_end(png_, nullptr);
    return true;
  }

  uint64_t height() const { return png_get_image_height(png_, info_); }
  uint64_t width() const { return png_get_image_width(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  uint64_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  uint64_t position() const { return at_; }
  const char* message() const { return message_; }

 private:
  bool Fail(const char* what) {
    std::strncpy(message_, what, sizeof(message_) - 1);
    return false;
  }
  [[noreturn]] static void OnError(png_structp png, png_const_charp what) {
    static_cast<PngDecoder*>(png_get_error_ptr(png))->Fail(what);
    png_longjmp(png, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}  // about ancillary chunks only
  static void OnRead(png_structp png, png_bytep to, size_t size) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (!Inside(self->at_, size, self->file_.size())) png_error(png, "the file ends early");
    std::memcpy(to, self->file_.data() + self->at_, size);
    self->at_ += size;
  }

  const Bytes& file_;
  uint64_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  char message_[128] = {};
};

}  // namespace

absl::StatusOr<ir::HostValue> DecodePng(const Bytes& file, std::string_view where) {
  PngDecoder decoder(file);
  const auto damaged = [&] {
    return DataLoss("{}: damaged PNG near byte {}: {}", where, decoder.position(),
                    decoder.message());
  };
  if (!decoder.Open()) return damaged();
  // Palettes of one bit make 24 bits a pixel out of one.
  if (decoder.height() >
      kMaxExpansion * 24 * file.size() / std::max<uint64_t>(decoder.row_bytes(), 1))
    return DataLoss("{}: {} rows of {} bytes cannot come out of {} bytes", where, decoder.height(),
                    decoder.row_bytes(), file.size());
  FORGE_ASSIGN_OR_RETURN(ir::HostValue image,
                         EmptyImage(decoder.height(), decoder.width(), decoder.channels(), where));
  if (decoder.row_bytes() * decoder.height() != image.bytes().size())
    return DataLoss("{}: a row has {} bytes, which do not match {} pixels", where,
                    decoder.row_bytes(), decoder.width());
  if (!decoder.ReadRows(image.mutable_bytes().data())) return damaged();
  return image;
}

}  // namespace forge
