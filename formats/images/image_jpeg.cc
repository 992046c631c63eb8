// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above first.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>

#include "formats/images/exif.h"
#include "formats/images/image_codecs.h"

namespace forge {
namespace {

// A small progressive file may hold very many scans over a large picture, each as long as a decode.
constexpr int kMaxScans = 500;

// A Huffman code takes a bit at least for each block of 64 pixels, and of some component there are
// blocks for half the picture. Arithmetic codes have no such bound.
constexpr uint64_t kMaxPixelsOfByte = 1024;

constexpr int kExifMarker = JPEG_APP0 + 1;

class JpegDecoder {
 public:
  explicit JpegDecoder(const Bytes& file) : file_(file) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = &OnError;
    errors_.emit_message = &OnMessage;
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = &OnProgress;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }

  // Reads the header and asks for grey, RGB, or what RGB is made of. False: see message().
  bool Open() {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, file_.data(), file_.size());
    jpeg_save_markers(&jpeg_, kExifMarker, 0xFFFF);
    jpeg_read_header(&jpeg_, TRUE);
    const bool inks = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    jpeg_.out_color_space = inks ? JCS_CMYK : jpeg_.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg_);
    return true;
  }

  // Fills `out`: height rows of width * channels bytes.
  bool ReadRows(uint8_t* out) {
    if (has_inks()) row_.resize(size_t{4} * jpeg_.output_width);
    if (setjmp(jump_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    const size_t stride = size_t{jpeg_.output_width} * static_cast<size_t>(channels());
    while (jpeg_.output_scanline < jpeg_.output_height) {
      uint8_t* to = out + jpeg_.output_scanline * stride;
      JSAMPROW row = has_inks() ? row_.data() : to;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (has_inks()) ToRgb(to);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  uint64_t height() const { return jpeg_.output_height; }
  uint64_t width() const { return jpeg_.output_width; }
  int channels() const { return has_inks() ? 3 : jpeg_.out_color_components; }
  int orientation() const {
    for (const jpeg_marker_struct* m = jpeg_.marker_list; m != nullptr; m = m->next)
      if (m->marker == kExifMarker)
        if (const int found = ExifOrientation({m->data, m->data_length}); found != 1) return found;
    return 1;
  }
  bool is_huffman() const { return !jpeg_.arith_code; }
  uint64_t position() const {
    return jpeg_.src == nullptr ? 0 : file_.size() - jpeg_.src->bytes_in_buffer;
  }
  const char* message() const { return message_; }

 private:
  static JpegDecoder& Self(j_common_ptr jpeg) {
    return *static_cast<JpegDecoder*>(jpeg->client_data);
  }
  [[noreturn]] static void OnError(j_common_ptr jpeg) {
    JpegDecoder& self = Self(jpeg);
    jpeg->err->format_message(jpeg, self.message_);
    std::longjmp(self.jump_, 1);
  }
  // Warnings (negative levels) mean that the library made pixels up, except for stray bytes between
  // markers, which some cameras write.
  static void OnMessage(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) OnError(jpeg);
  }
  static void OnProgress(j_common_ptr jpeg) {
    if (Self(jpeg).jpeg_.input_scan_number <= kMaxScans) return;
    std::snprintf(Self(jpeg).message_, sizeof(message_), "more than %d scans", kMaxScans);
    std::longjmp(Self(jpeg).jump_, 1);
  }

  bool has_inks() const { return jpeg_.out_color_space == JCS_CMYK; }
  // From cyan, magenta, yellow and black. Adobe's files, which are nearly all, hold what is left of
  // the light instead of the ink.
  void ToRgb(uint8_t* to) const {
    const auto light = [&](size_t i) {
      return jpeg_.saw_Adobe_marker ? unsigned{row_[i]} : 255u - row_[i];
    };
    for (size_t x = 0; x < jpeg_.output_width; ++x)
      for (size_t c = 0; c < 3; ++c)
        to[3 * x + c] = static_cast<uint8_t>((light(4 * x + c) * light(4 * x + 3) + 127) / 255);
  }

  const Bytes& file_;
  std::vector<uint8_t> row_;  // of inks
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

absl::StatusOr<ir::HostValue> DecodeJpeg(const Bytes& file, std::string_view where) {
  JpegDecoder decoder(file);
  const auto damaged = [&] {
    return DataLoss("{}: damaged JPEG near byte {}: {}", where, decoder.position(),
                    decoder.message());
  };
  if (!decoder.Open()) return damaged();
  if (decoder.is_huffman() && decoder.height() * decoder.width() > kMaxPixelsOfByte * file.size())
    return DataLoss("{}: {} x {} pixels cannot come out of {} bytes", where, decoder.height(),
                    decoder.width(), file.size());
  FORGE_ASSIGN_OR_RETURN(ir::HostValue image,
                         EmptyImage(decoder.height(), decoder.width(), decoder.channels(), where));
  const int orientation = decoder.orientation();  // before the end, which frees the markers
  if (!decoder.ReadRows(image.mutable_bytes().data())) return damaged();
  return Upright(std::move(image), orientation);
}

}  // namespace forge
