// SPDX-License-Identifier: Apache-2.0
// Names one picture: hello_cc MODEL.bin PICTURE.png [DEVICE]
#include <cstdio>

#include "formats/images/image.h"
#include "formats/images/preprocess.h"
#include "runtime/backends.h"
#include "runtime/session.h"

namespace {

absl::Status Name(const char* model_file, const char* picture, const char* device_name) {
  auto model = forge::Model::Load(model_file);
  if (!model.ok()) return model.status();
  auto device = forge::OpenDevice(device_name, {});
  if (!device.ok()) return device.status();
  auto session = forge::Session::Create(*model, *device);
  if (!session.ok()) return session.status();

  // The model says itself how a picture becomes its input.
  auto how = forge::ParsePreprocess((*model)->Metadata("preprocess"));
  if (!how.ok()) return how.status();
  auto image = forge::ReadImage(picture);
  if (!image.ok()) return image.status();
  auto tensor = forge::ApplyPreprocess(*how, *image);
  if (!tensor.ok()) return tensor.status();

  const forge::NamedTensor input{(*session)->inputs()[0].name, *tensor};
  auto outputs = (*session)->Run({&input, 1});
  if (!outputs.ok()) return outputs.status();
  const forge::ir::HostValue& scores = (*outputs)[0].value;
  int64_t best = 0;
  for (int64_t i = 1; i < scores.elements(); ++i)
    if (scores.f64(i) > scores.f64(best)) best = i;
  std::printf("%s: class %lld with %.2f %% on %s\n", picture, static_cast<long long>(best),
              scores.f64(best) * 100, (*device)->info().name.c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: hello_cc MODEL.bin PICTURE.png [DEVICE]\n");
    return 2;
  }
  const absl::Status s = Name(argv[1], argv[2], argc > 3 ? argv[3] : "auto");
  if (s.ok()) return 0;
  std::fprintf(stderr, "hello_cc: %s\n", s.ToString().c_str());
  return 1;
}
