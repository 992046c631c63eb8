// SPDX-License-Identifier: Apache-2.0
// Finds the text in pictures and reads it, with the three networks of PP-OCR.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "find_text.h"
#include "read_line.h"
#include "runtime/backends.h"

namespace {

constexpr char kUsage[] =
    R"(usage: read_text --det MODEL --rec MODEL [--cls MODEL] [options] PICTURE...

Finds lines of text in PNG and JPEG pictures and prints what they say, one a line.

  --det MODEL        finds text: model.bin or .onnx
  --rec MODEL        reads a line; its alphabet is in its metadata
  --cls MODEL        tells lines that are upside down
  --device DEVICE    auto (default), cpu, vulkan, cuda, reference; :N or :NAME-PART picks one
  --boxes            print confidence and corners, clockwise from the start of the line, before each
  --least P          leave out lines with less confidence, 0 to 1 (default 0.5)
  --longest-side N   scale larger pictures down to find text, 32 to 8192 pixels (default 960)

example: read_text --det ppocr-det.onnx --cls ppocr-cls.onnx --rec ppocr-rec.onnx letter.png

exit status: 1 the work failed, 2 bad usage, 3 bad input file, 4 no such device, 5 the device refuses
)";

struct Options {
  std::string det, cls, rec, device = "auto";
  bool boxes = false;
  double least = 0.5;
  double longest_side = 960;
  std::vector<std::string> pictures;
};

bool ParseNumber(std::string_view text, double low, double high, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
}

// Empty when the arguments are wrong, once a sentence on stderr says so.
std::optional<Options> Parse(int argc, char** argv) {
  Options o;
  const auto wrong = [](const std::string& what) {
    std::fprintf(stderr, "read_text: error: %s (see read_text --help)\n", what.c_str());
    return std::nullopt;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      o.pictures.push_back(name);
      continue;
    }
    if (name == "--boxes") {
      o.boxes = true;
      continue;
    }
    const std::pair<const char*, std::string*> texts[] = {
        {"--det", &o.det}, {"--cls", &o.cls}, {"--rec", &o.rec}, {"--device", &o.device}};
    const auto text = std::find_if(std::begin(texts), std::end(texts),
                                   [&](const auto& t) { return name == t.first; });
    const bool number = name == "--least" || name == "--longest-side";
    if (text == std::end(texts) && !number) return wrong("unknown option '" + name + "'");
    if (++i == argc) return wrong(name + " needs a value");
    if (text != std::end(texts)) {
      *text->second = argv[i];
    } else if (name == "--least" ? !ParseNumber(argv[i], 0, 1, o.least)
                                 : !ParseNumber(argv[i], 32, 8192, o.longest_side)) {
      return wrong(name + " cannot be '" + argv[i] + "'");
    }
  }
  if (o.det.empty() || o.rec.empty()) return wrong("--det and --rec are needed");
  if (o.pictures.empty()) return wrong("no picture is given");
  return o;
}

struct Reader {
  Network detector, recogniser;
  std::optional<Network> classifier;
  Alphabet alphabet;
};

absl::StatusOr<Reader> LoadReader(const Options& o) {
  auto device = forge::OpenDevice(o.device, {});
  if (!device.ok()) return device.status();
  auto detector = Network::Load(o.det, *device);
  if (!detector.ok()) return detector.status();
  auto recogniser = Network::Load(o.rec, *device);
  if (!recogniser.ok()) return recogniser.status();
  auto alphabet = Alphabet::Of(*recogniser);
  if (!alphabet.ok()) return alphabet.status();
  Reader r{*std::move(detector), *std::move(recogniser), std::nullopt, *std::move(alphabet)};
  if (o.cls.empty()) return r;
  auto classifier = Network::Load(o.cls, *device);
  if (!classifier.ok()) return classifier.status();
  r.classifier = *std::move(classifier);
  return r;
}

void Print(const Reading& reading, const Quad& corners, bool boxes) {
  if (boxes) {
    std::printf("%.3f ", reading.confidence);
    for (const Point p : corners) std::printf(" %ld,%ld", std::lround(p.x), std::lround(p.y));
    std::printf("  ");
  }
  std::printf("%s\n", reading.text.c_str());
}

absl::Status ReadPicture(Reader& reader, const std::string& file, const Options& o) {
  auto picture = Picture::Read(file);
  if (!picture.ok()) return picture.status();
  auto boxes = FindText(reader.detector, *picture, static_cast<int64_t>(o.longest_side));
  if (!boxes.ok()) return boxes.status();
  for (const TextBox& box : *boxes) {
    absl::StatusOr<Quad> corners = box.corners;
    if (reader.classifier) corners = Upright(*reader.classifier, *picture, box.corners);
    if (!corners.ok()) return corners.status();
    auto reading = ReadLine(reader.recogniser, reader.alphabet, *picture, *corners);
    if (!reading.ok()) return reading.status();
    if (!reading->text.empty() && reading->confidence >= o.least)
      Print(*reading, *corners, o.boxes);
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& o) {
  auto reader = LoadReader(o);
  if (!reader.ok()) return reader.status();
  for (const std::string& file : o.pictures) {
    const absl::Status s = ReadPicture(*reader, file, o);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") != 0 && std::strcmp(argv[i], "-h") != 0) continue;
    std::fputs(kUsage, stdout);
    return 0;
  }
  const std::optional<Options> o = Parse(argc, argv);
  if (!o) return 2;
  const absl::Status s = Run(*o);
  if (!s.ok()) std::fprintf(stderr, "read_text: error: %s\n", std::string(s.message()).c_str());
  return forge::ExitStatus(s);
}
