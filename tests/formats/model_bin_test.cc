// SPDX-License-Identifier: Apache-2.0
#include "formats/model_bin/model_bin.h"

#include <xxhash.h>

#include <cstring>
#include <random>

#include "base/platform.h"
#include "formats/model_bin/model_generated.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::Dim;
using ir::Type;
using ir::Variable;

Bytes CountingBytes(size_t bytes, uint8_t first) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(first + i);
  return Bytes(std::move(out));
}

Variable Weight(std::string name, const Type& type, uint8_t first) {
  const auto bytes = static_cast<size_t>(type.bytes()->constant());
  return {.name = std::move(name),
          .role = Variable::Role::kParameter,
          .type = type,
          .trainable = first % 2 == 1,
          .init = Variable::Storage{CountingBytes(bytes, first), type, {}}};
}

void AddBody(ir::Module& m, const Dim& n) {
  ir::Function& f = *m.AddFunction("region");
  const ir::Value a = f.Argument("a", F32({n, 8}));
  f.Return("y", f(ir::HardSigmoid{.alpha = 0.1}, {f(ir::Relu{}, {a})}));
}

void AddMain(ir::Module& m, const Dim& n, const Dim& h) {
  ir::Function& f = *m.AddFunction("main");
  const ir::Value x = f.Argument("x", F32({n, 3, h, 2 * h + FloorDiv(n, 2)}));
  auto conv = std::make_shared<ir::Provenance>(ir::Provenance{"Conv_0", "Conv", "", {}});
  auto relu = std::make_shared<ir::Provenance>(ir::Provenance{"Relu_0", "Relu", "", {}});
  auto both = std::make_shared<ir::Provenance>(ir::Provenance{"", "", "fuse", {conv, relu}});
  ir::Value y;
  {
    const ir::Function::Scope at(f, both);
    const ir::Value w = f.Read(m.AddVariable(Weight("w", F32({8, 3, 3, 3}), 1)));
    y = f(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w, {}});
  }
  f.SetName(y, "conv.out");
  const ir::Value gamma = f.Read(m.AddVariable(Weight("gamma", F32({8}), 2)));
  Variable tied = Weight("tied", F32({8}), 2);
  tied.init->bytes = m.FindVariable("gamma")->init->bytes;
  const ir::Value beta = f.Read(m.AddVariable(std::move(tied)));
  Variable box = Weight("box", F32({8}), 4);
  box.init = Variable::Storage{CountingBytes(2 * 8 * 4, 9), F32({2, 8}), {1, 0}};
  box.type = F32({1, 8});
  const ir::Value mean = f(ir::Reshape{{8}}, {f.Read(m.AddVariable(std::move(box)))});
  y = f(ir::BatchNorm{.epsilon = 0.1}, {y, gamma, beta, mean, gamma});
  y = f(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {2, 3}, .keep_dims = false}, {y});
  const ir::Value state = f.Read(m.AddVariable(
      {.name = "state", .role = Variable::Role::kState, .type = F32({8}), .init = std::nullopt}));
  y = f(ir::Fused{m.Find("region")}, {y});
  f.Store(m.FindVariable("state"), state);
  const ir::Value shape = f(ir::ShapeOf{}, {y});
  const ir::Function::RuntimeField runtime[] = {{"shape", shape}};
  const std::array in = {y};
  f.Return("late", f.AddRuntimeValued(ir::Reshape{}, in, runtime)[0]);
  f.Return("y", y);
}

std::unique_ptr<ir::Module> SampleModule() {
  auto m = std::make_unique<ir::Module>();
  auto n = std::make_shared<ir::Symbol>(ir::Symbol{"n", 1, 8, 1, ir::When::kBind});
  auto h = std::make_shared<ir::Symbol>(ir::Symbol{"x.2", 32, 4096, 32, ir::When::kBind});
  auto step = std::make_shared<ir::Symbol>(ir::Symbol{"step", 0, 99, 1, ir::When::kStep});
  for (const auto& s : {n, h, step}) m->AddSymbol(s);
  AddBody(*m, Dim(n));
  AddMain(*m, Dim(n), Dim(h));
  m->metadata = {
      {"labels", "[\"a\", \"b\"]"}, {"empty", ""}, {"odd \"key\"", std::string("\0\xff", 2)}};
  return m;
}

std::vector<uint8_t> FileOf(const ir::Module& m) {
  const TempFolder folder;
  EXPECT_THAT(WriteModel(m, folder / "m.bin"), Succeeds());
  const Bytes file = *MapFile(folder / "m.bin");
  return {file.span().begin(), file.span().end()};
}

absl::StatusOr<std::unique_ptr<ir::Module>> Read(std::vector<uint8_t> file, bool verify = false) {
  return ReadModel(Bytes(std::move(file)), "m.bin", {.verify_weights = verify});
}

template <class T>
T Get(const std::vector<uint8_t>& file, size_t at) {
  T v;
  std::memcpy(&v, &file[at], sizeof(T));
  return v;
}
template <class T>
void Put(std::vector<uint8_t>& file, size_t at, T v) {
  std::memcpy(&file[at], &v, sizeof(T));
}

// Makes the checksums of graph and header right again, so that the checks behind them are reached.
void Reseal(std::vector<uint8_t>& file) {
  const auto size = Get<uint64_t>(file, 16);
  if (size <= file.size() - 64) Put(file, 24, XXH3_64bits(&file[64], size));
  Put(file, 56, XXH3_64bits(file.data(), 56));
}

void ExpectSame(const ir::Module& a, const ir::Module& b) {
  EXPECT_EQ(ir::ToText(a), ir::ToText(b));
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.variables().size(), b.variables().size());
  for (size_t i = 0; i < a.variables().size(); ++i) {
    const Variable &v = *a.variables()[i], &w = *b.variables()[i];
    EXPECT_EQ(v.name, w.name);
    EXPECT_EQ(v.role, w.role);
    EXPECT_EQ(v.type.ToText(), w.type.ToText());
    EXPECT_EQ(v.trainable, w.trainable);
    ASSERT_EQ(v.init.has_value(), w.init.has_value());
    if (!v.init) continue;
    EXPECT_TRUE(std::ranges::equal(v.init->bytes.span(), w.init->bytes.span()));
    EXPECT_EQ(v.init->begin, w.init->begin);
  }
  ASSERT_EQ(a.symbols().size(), b.symbols().size());
  for (size_t i = 0; i < a.symbols().size(); ++i) {
    const ir::Symbol &s = *a.symbols()[i], &t = *b.symbols()[i];
    EXPECT_EQ(std::tie(s.name, s.min, s.max, s.divisor, s.when),
              std::tie(t.name, t.min, t.max, t.divisor, t.when));
  }
}

TEST(ModelBinTest, RoundTripsEverything) {
  const auto m = SampleModule();
  ASSERT_THAT(ir::Verify(*m), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, Read(FileOf(*m), true));
  ExpectSame(*m, *back);
  const ir::Function& f = *back->Find("main");
  EXPECT_EQ(f.NameOf(f.nodes()[0].first_out), "conv.out");
  EXPECT_EQ(f.nodes()[0].from->ToText(), "Conv_0 + Relu_0");
  EXPECT_EQ(f.nodes()[0].from->pass, "fuse");
}

TEST(ModelBinTest, IsTheSameFileEachTime) {
  EXPECT_EQ(FileOf(*SampleModule()), FileOf(*SampleModule()));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, Read(FileOf(*SampleModule())));
  EXPECT_EQ(FileOf(*back), FileOf(*SampleModule()));
}

TEST(ModelBinTest, StoresEqualWeightsOnceAndAligned) {
  const auto m = SampleModule();
  const std::vector<uint8_t> file = FileOf(*m);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, Read(file));
  EXPECT_EQ(back->FindVariable("gamma")->init->bytes.data(),
            back->FindVariable("tied")->init->bytes.data());
  // w, gamma and box; the last without a gap behind it
  EXPECT_EQ(Get<uint64_t>(file, 40), 896u + 64 + 64);
  EXPECT_EQ(Get<uint64_t>(file, 32) % 64, 0u);
}

TEST(ModelBinTest, MapsWeightsInPlace) {
  const TempFolder folder;
  ASSERT_THAT(WriteModel(*SampleModule(), folder / "m.bin"), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, ReadModel(folder / "m.bin"));
  for (const auto& v : back->variables()) {
    const uint8_t* at = v->init ? v->init->bytes.data() : nullptr;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u) << v->name;
  }
}

TEST(ModelBinTest, WritesAnEmptyModule) {
  const ir::Module empty;
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, Read(FileOf(empty)));
  EXPECT_TRUE(back->functions().empty());
}

TEST(ModelBinTest, RefusesASymbolOfAnotherModule) {
  ir::Module m;
  const Dim foreign(std::make_shared<ir::Symbol>(ir::Symbol{.name = "k"}));
  ir::Function& f = *m.AddFunction("main");
  f.Return("y", f.Argument("x", F32({foreign})));
  const TempFolder folder;
  EXPECT_THAT(WriteModel(m, folder / "m.bin"), Fails(StatusCode::kInvalidArgument, "'k'"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// ---- external weights ---------------------------------------------------------------------------

TEST(ModelBinTest, KeepsWeightsInAFileBeside) {
  const TempFolder folder;
  const auto m = SampleModule();
  ASSERT_THAT(WriteModel(*m, folder / "m.bin", {.external_weights = true}), Succeeds());
  EXPECT_TRUE(std::filesystem::exists(folder / "m.bin.weights"));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back,
                             ReadModel(folder / "m.bin", {.verify_weights = true}));
  ExpectSame(*m, *back);
}

TEST(ModelBinTest, RefusesExternalWeightsThatAreNotItsOwn) {
  const TempFolder folder;
  const auto m = SampleModule();
  ASSERT_THAT(WriteModel(*m, folder / "m.bin", {.external_weights = true}), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const Bytes model, MapFile(folder / "m.bin"));
  EXPECT_THAT(ReadModel(model, "m.bin"),
              Fails(StatusCode::kDataLoss, "load the model by its path"));
  std::filesystem::copy(folder / "m.bin.weights", folder / "saved");
  std::filesystem::resize_file(folder / "m.bin.weights", 100);
  EXPECT_THAT(ReadModel(folder / "m.bin"), Fails(StatusCode::kDataLoss, "m.bin.weights"));
  ir::Module other;
  other.AddVariable(Weight("w", F32({4}), 77));
  ASSERT_THAT(WriteModel(other, folder / "o.bin", {.external_weights = true}), Succeeds());
  std::filesystem::rename(folder / "o.bin.weights", folder / "m.bin.weights");
  EXPECT_THAT(ReadModel(folder / "m.bin"), Fails(StatusCode::kDataLoss, "another model"));
  std::filesystem::remove(folder / "m.bin.weights");
  EXPECT_THAT(ReadModel(folder / "m.bin"), Fails(StatusCode::kNotFound, "m.bin.weights"));
}

TEST(ModelBinTest, LeavesNothingWhereItCannotWrite) {
  const TempFolder folder;
  EXPECT_THAT(WriteModel(*SampleModule(), folder / "none" / "m.bin"),
              Fails(StatusCode::kInternal, "m.bin"));
  std::filesystem::create_directory(folder / "m.bin");
  EXPECT_FALSE(WriteModel(*SampleModule(), folder / "m.bin", {.external_weights = true}).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "m.bin.weights"));
}

// ---- damage -------------------------------------------------------------------------------------

TEST(ModelBinTest, RefusesEmptyAndForeignFiles) {
  EXPECT_THAT(Read({}), Fails(StatusCode::kDataLoss, "0 bytes are too few"));
  EXPECT_THAT(Read(std::vector<uint8_t>(100, 'x')), Fails(StatusCode::kDataLoss, "wrong magic"));
  EXPECT_THAT(ReadModel("/nonexistent/m.bin"), Fails(StatusCode::kNotFound, "m.bin"));
}

TEST(ModelBinTest, RefusesTruncationAtEveryByteOfTheHeaderAndTenOthers) {
  const std::vector<uint8_t> good = FileOf(*SampleModule());
  std::vector<size_t> sizes;
  for (size_t n = 0; n <= 64; ++n) sizes.push_back(n);
  for (size_t i = 1; i <= 10; ++i) sizes.push_back(good.size() - i * good.size() / 11);
  sizes.push_back(good.size() - 1);
  for (const size_t n : sizes)
    EXPECT_THAT(Read({good.begin(), good.begin() + static_cast<ptrdiff_t>(n)}),
                Fails(StatusCode::kDataLoss, "m.bin"))
        << n;
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_THAT(Read(longer), Fails(StatusCode::kDataLoss, "do not end at the end of the file"));
}

TEST(ModelBinTest, TellsANewerMajorVersionAndOpensANewerMinorOne) {
  std::vector<uint8_t> file = FileOf(*SampleModule());
  Put<uint16_t>(file, 8, 7);
  Put<uint16_t>(file, 10, 3);
  EXPECT_THAT(Read(file), Fails(StatusCode::kDataLoss, "format 7.3, but this program reads 1.x"));
  Put<uint16_t>(file, 8, 1);
  Reseal(file);
  EXPECT_THAT(Read(file), Succeeds());
}

TEST(ModelBinTest, RefusesEveryBitFlipBeforeTheWeights) {
  const std::vector<uint8_t> good = FileOf(*SampleModule());
  const size_t end = 64 + Get<uint64_t>(good, 16);
  for (size_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<uint8_t> file = good;
    const size_t at = seed < 20 ? random() % 64 : random() % end;
    file[at] ^= static_cast<uint8_t>(1 << random() % 8);
    EXPECT_THAT(Read(file), Fails(StatusCode::kDataLoss, "m.bin")) << at;
  }
}

TEST(ModelBinTest, FindsABitFlipInWeightsWhenAsked) {
  std::vector<uint8_t> file = FileOf(*SampleModule());
  file.back() ^= 1;
  EXPECT_THAT(Read(file, false), Succeeds());
  EXPECT_THAT(Read(file, true), Fails(StatusCode::kDataLoss, "blob 2"));
}

TEST(ModelBinTest, RefusesHeadersThatLie) {
  const std::vector<uint8_t> good = FileOf(*SampleModule());
  const auto with = [&](size_t at, uint64_t v) {
    std::vector<uint8_t> file = good;
    Put(file, at, v);
    Put(file, 56, XXH3_64bits(file.data(), 56));
    return Read(file);
  };
  EXPECT_THAT(with(16, UINT64_MAX), Fails(StatusCode::kDataLoss, "do not fit the file"));
  EXPECT_THAT(with(16, UINT64_MAX - 63), Fails(StatusCode::kDataLoss, "do not fit the file"));
  EXPECT_THAT(with(32, UINT64_MAX & ~63u), Fails(StatusCode::kDataLoss, "weights begin at"));
  EXPECT_THAT(with(32, 65), Fails(StatusCode::kDataLoss, "weights begin at byte 65"));
  EXPECT_THAT(with(32, 64), Fails(StatusCode::kDataLoss, "inside the graph"));
  // Four bytes on, and four bytes less of them.
  std::vector<uint8_t> shifted = good;
  Put(shifted, 32, Get<uint64_t>(good, 32) + 4);
  Put(shifted, 40, Get<uint64_t>(good, 40) - 4);
  Reseal(shifted);
  EXPECT_THAT(Read(shifted), Fails(StatusCode::kDataLoss, "weights begin at byte"));
  EXPECT_THAT(with(40, UINT64_MAX), Fails(StatusCode::kDataLoss, "do not end"));
  EXPECT_THAT(with(48, 1), Fails(StatusCode::kDataLoss, "byte 48"));
  EXPECT_THAT(with(12, 0xfff0), Fails(StatusCode::kDataLoss, "flags"));
}

TEST(ModelBinTest, RefusesTypesThatAreNestedTooDeep) {
  const auto read = [](int depth) {
    ir::Module m;
    ir::Type type = ir::Type::Tensor(DType::kF32, {2});
    for (int i = 0; i < depth; ++i) type = ir::Type::Sequence(type);
    ir::Function& f = *m.AddFunction("main");
    f.Return("y", f.Argument("x", type));
    return Read(FileOf(m));
  };
  EXPECT_THAT(read(15), Succeeds());
  EXPECT_THAT(read(17), Fails(StatusCode::kDataLoss, "nested too deep"));
}

TEST(ModelBinTest, RefusesQuotientsOfThreeNumbers) {
  ir::Module m;
  const ir::Dim n(m.SymbolNamed("n")), h(m.SymbolNamed("h")), w(m.SymbolNamed("w"));
  ir::Function& f = *m.AddFunction("main");
  f.Return("y", f.Argument("x", F32({FloorDiv(n, FloorDiv(h, w))})));
  f.Argument("all", F32({n, h, w}));
  std::vector<uint8_t> file = FileOf(m);
  bool changed = false;
  for (const fb::Type* type : *fb::GetModel(file.data() + 64)->types())
    for (const fb::Dim* dim : *type->shape()) {
      if (dim->tokens() == nullptr || dim->tokens()->size() != 5 || changed) continue;
      const fb::DimToken* token = dim->tokens()->Get(3);  // behind n, h and w
      const auto at = static_cast<size_t>(reinterpret_cast<const uint8_t*>(token) - file.data());
      Put(file, at, fb::DimToken(3, token->op()));
      changed = true;
    }
  ASSERT_TRUE(changed);
  Reseal(file);
  EXPECT_THAT(Read(file), Fails(StatusCode::kDataLoss, "has 3 operands"));
}

TEST(ModelBinTest, RefusesBlobsThatAreNotAligned) {
  std::vector<uint8_t> file = FileOf(*SampleModule());
  const auto& blobs = *fb::GetModel(file.data() + 64)->blobs();
  const fb::Blob first = *blobs[0];
  const auto at = static_cast<size_t>(reinterpret_cast<const uint8_t*>(blobs[0]) - file.data());
  Put(file, at, fb::Blob(first.offset() + 4, first.size() - 4, first.checksum()));
  Put(file, 48, XXH3_64bits(file.data() + at, blobs.size() * sizeof(fb::Blob)));
  Reseal(file);
  EXPECT_THAT(Read(file), Fails(StatusCode::kDataLoss, "blob 0 at 4 of"));
}

// The name's length stands before it, and zeros fill its last word.
TEST(ModelBinTest, OpensFilesOfFormat10WithTheirNamesOfOperators) {
  using namespace std::string_view_literals;
  std::vector<uint8_t> file = FileOf(*SampleModule());
  constexpr std::string_view kNow = "\4\0\0\0conv\0\0\0\0"sv, kBefore = "\6\0\0\0conv2d\0\0"sv;
  const auto at = std::search(file.begin(), file.end(), kNow.begin(), kNow.end());
  ASSERT_NE(at, file.end());
  std::copy(kBefore.begin(), kBefore.end(), at);
  Put(file, 10, uint16_t{0});
  Reseal(file);
  const auto read = Read(file);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(**read, *SampleModule());
}

// Names are changed where they stand in the graph, without changing their length.
TEST(ModelBinTest, NamesOperatorsAndAttributesThatItDoesNotKnow) {
  const std::vector<uint8_t> good = FileOf(*SampleModule());
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::vector<uint8_t> file = good;
    const auto at = std::search(file.begin(), file.end(), from.begin(), from.end());
    EXPECT_NE(at, file.end());
    std::copy(to.begin(), to.end(), at);
    Reseal(file);
    return Read(file);
  };
  EXPECT_THAT(replaced("batch_norm", "batch_worm"),
              Fails(StatusCode::kDataLoss, "unknown operator 'batch_worm'"));
  EXPECT_THAT(replaced("batch_norm", "batch_worm"),
              Fails(StatusCode::kDataLoss, "function 'main': node"));
  EXPECT_THAT(replaced("epsilon", "epsilom"),
              Fails(StatusCode::kDataLoss, "'batch_norm' has no attribute 'epsilom'"));
  EXPECT_THAT(replaced("dilations", "dilationz"), Fails(StatusCode::kDataLoss, "'dilationz'"));
  EXPECT_THAT(replaced("mean", "meen"), Fails(StatusCode::kDataLoss, "meen"));
  EXPECT_THAT(replaced("f32", "f99"), Fails(StatusCode::kDataLoss, "'f99'"));
}

// A file whose only content is a list of one blob, `shift` words further from where it began.
std::vector<uint8_t> FileOfOneBlob(int shift) {
  flatbuffers::FlatBufferBuilder b;
  constexpr uint32_t kWords = sizeof(fb::Blob) / sizeof(uint32_t);
  const auto blobs = b.CreateVector(std::vector<uint32_t>(kWords));
  b.CreateVector(std::vector<uint32_t>(static_cast<size_t>(shift)));  // lies in front
  const auto start = b.StartTable();
  b.AddOffset(fb::Model::VT_BLOBS, flatbuffers::Offset<void>(blobs.o));
  b.Finish(flatbuffers::Offset<fb::Model>(b.EndTable(start)));
  std::vector<uint8_t> graph(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
  Put<uint32_t>(graph, graph.size() - blobs.o, 1);  // the words are one blob
  std::vector<uint8_t> file = FileOf(ir::Module());
  file.resize(64);
  file.insert(file.end(), graph.begin(), graph.end());
  Put<uint64_t>(file, 16, graph.size());
  file.resize((file.size() + 63) / 64 * 64);
  Put<uint64_t>(file, 32, file.size());
  const fb::Blob blob(0, 0, 0);
  Put(file, 48, XXH3_64bits(&blob, sizeof(blob)));
  Reseal(file);
  return file;
}

// A file whose function main is one fill of an f64 with that attribute `value`.
template <class Build>
std::vector<uint8_t> FileOfFill(Build value) {
  flatbuffers::FlatBufferBuilder b;
  const std::vector attributes = {
      value(b),
      fb::CreateAttributeDirect(b, "dtype", fb::FieldKind::DType, nullptr, nullptr, "f64")};
  const std::vector nodes = {fb::CreateNodeDirect(b, "fill", nullptr, &attributes)};
  const std::vector results = {fb::CreateResultDirect(b, "y", 0)};
  const std::vector functions = {
      fb::CreateFunctionDirect(b, "main", nullptr, nullptr, &nodes, &results)};
  b.Finish(fb::CreateModelDirect(b, &functions));
  std::vector<uint8_t> file = FileOf(ir::Module());
  file.resize(64);
  file.insert(file.end(), b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
  Put<uint64_t>(file, 16, b.GetSize());
  file.resize((file.size() + 63) / 64 * 64);
  Put<uint64_t>(file, 32, file.size());
  Reseal(file);
  return file;
}

absl::StatusOr<Number> ValueOfFill(std::vector<uint8_t> file) {
  const auto module = Read(std::move(file));
  if (!module.ok()) return module.status();
  return (*module)->Find("main")->nodes()[0].op.As<ir::Fill>()->value;
}

TEST(ModelBinTest, NumbersAreExact) {
  for (const Number& number : {Number(INT64_MIN), Number((int64_t{1} << 53) + 1),
                               Number(UINT64_MAX), Number(-0.0), Number(0.1)}) {
    ir::Module m;
    ir::Function& f = *m.AddFunction("main");
    f.Return("y", f(ir::Fill{number, DType::kF64, {}}, {}));
    EXPECT_EQ(*ValueOfFill(FileOf(m)), number) << number.ToText();
  }
}

TEST(ModelBinTest, NumbersWereFloatsInFormat11) {
  const std::vector<double> floats = {2.5};
  std::vector<uint8_t> file = FileOfFill([&](flatbuffers::FlatBufferBuilder& b) {
    return fb::CreateAttributeDirect(b, "value", fb::FieldKind::Float, nullptr, &floats);
  });
  Put(file, 10, uint16_t{1});
  Reseal(file);
  EXPECT_EQ(*ValueOfFill(std::move(file)), 2.5);
}

TEST(ModelBinTest, RefusesNumbersThatAreNone) {
  for (const std::vector<int64_t>& ints :
       std::vector<std::vector<int64_t>>{{}, {0}, {0, 1, 2}, {3, 1}, {4, 1}, {-1, 1}, {2, 1, 1, 1}})
    EXPECT_THAT(ValueOfFill(FileOfFill([&](flatbuffers::FlatBufferBuilder& b) {
                  return fb::CreateAttributeDirect(b, "value", fb::FieldKind::Number, &ints);
                })).status(),
                Fails(StatusCode::kDataLoss, "attribute 'value' of 'fill'"));
}

// Where a list of eight-byte numbers lies, FlatBuffers does not check.
TEST(ModelBinTest, RefusesListsThatAreNotAligned) {
  int refused = 0;
  for (const int shift : {0, 1, 2, 3}) {
    const auto module = Read(FileOfOneBlob(shift));
    if (module.ok()) continue;
    ++refused;
    EXPECT_THAT(module, Fails(StatusCode::kDataLoss, "not aligned"));
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 4);
}

// What reaches the decoder is a FlatBuffer that verifies, with anything in it.
TEST(ModelBinTest, SurvivesAnyChangeOfTheGraph) {
  const std::vector<uint8_t> good = FileOf(*SampleModule());
  const size_t size = Get<uint64_t>(good, 16);
  std::mt19937 random(1);
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> file = good;
    const unsigned changes = 1 + random() % 3;
    for (unsigned i = 0; i < changes; ++i) {
      const size_t at = 64 + random() % size;
      const uint8_t choices[] = {0, 1, 2, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      file[at] = choices[random() % std::size(choices)];
    }
    Reseal(file);
    const auto module = Read(file);
    opened += module.ok();
    EXPECT_TRUE(module.ok() || module.status().code() == StatusCode::kDataLoss)
        << module.status().ToString();
    if (module.ok()) ir::ToText(**module);
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace forge
