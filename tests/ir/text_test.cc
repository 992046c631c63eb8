// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/graph/module.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "ir/text/lexer.h"
#include "ir/type/encodings.h"
#include "ir/type/host_value.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

Variable::Storage Stored(DType t, std::vector<int64_t> shape, std::vector<double> numbers) {
  HostValue v = *HostValue::Zeros(t, shape);
  for (size_t i = 0; i < numbers.size(); ++i) v.Set(static_cast<int64_t>(i), numbers[i]);
  return {v.shared_bytes(), v.type(), {}};
}

// Something of everything.
std::unique_ptr<Module> Sample() {
  auto m = std::make_unique<Module>();
  m->metadata = {{"labels", "shirt, \"trouser\"\n"}, {"x/y", ""}};
  const Dim n(m->SymbolNamed("n"));
  m->AddSymbol(std::make_shared<Symbol>(Symbol{"pos", 0, 4096, 8, When::kStep}));
  const Dim pos(m->FindSymbol("pos"));
  const Dim odd(m->SymbolNamed("image:0.1"));
  Variable* w = m->AddVariable({.name = "conv.weight",
                                .role = Variable::Role::kParameter,
                                .type = F32({8, 3, 3, 3}),
                                .trainable = true,
                                .init = Stored(DType::kF32, {8, 3, 3, 3}, {1, 2})});
  Variable* b = m->AddVariable({.name = "bias",
                                .type = F32({8}),
                                .init = Stored(DType::kF32, {8}, {0.1, -0.0, 1e-40, INFINITY})});
  Variable* part = m->AddVariable({.name = "part", .type = F32({4, 3, 3, 3}), .init = w->init});
  part->init->begin = {4, 0, 0, 0};
  Variable* cache = m->AddVariable({.name = "cache",
                                    .role = Variable::Role::kState,
                                    .type = Type::Tensor(DType::kF16, {1, pos + 1, 64})});

  Function* body = m->AddFunction("body");
  const Value a = body->Argument("a", F32({n, 8, 26, 26}));
  body->Return("r", (*body)(Relu{}, {a}));

  Function& f = *m->AddFunction("main");
  const Value x = f.Argument("image:0", F32({n, 3, 28, 28}));
  const Value shape = f.Argument("shape", Type::Tensor(DType::kI64, {2}));
  f.Argument("odd", Type::Sequence(Type::Optional(F32({FloorDiv(odd + 3, 4) * n - 2}))));
  Value y, z;
  {
    const Function::Scope scope(f, From("Conv_0", "Conv"));
    y = f(Conv{}, {x, f.Read(w), f.Read(b)});
    f.SetName(y, "conv");
  }
  {
    const ProvenanceRef parts[] = {From("Relu 1", "Relu"), From("Add_2", "")};
    const Function::Scope scope(f, MadeBy("fuse", parts));
    z = f(Fused{body}, {y});
    f.SetName(z, "conv");
  }
  const Value flat = f(Reshape{{n, 5408}}, {z});
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  const Value dynamic = f.AddRuntimeValued(Reshape{}, {{flat}}, runtime)[0];
  const Value soft = f(Softmax{.axis = 1}, {flat});
  const Value laid =
      f(Relayout{F32({n, 8, 26, 26}).With(*PermutedEncoding::Make({0, 2, 3, 1}))}, {z});
  f.Store(cache, f.Read(cache));
  f.Return("scores", soft);
  f.Return("dynamic/0", dynamic);
  f.Return("laid", laid);
  f.Return("w", f.Read(part));
  FORGE_CHECK(f.status().ok());
  return m;
}

TEST(TextTest, PleasesAReader) {
  EXPECT_EQ(ToText(*Sample()), R"text(module {
  metadata labels = "shirt, \"trouser\"\n"
  metadata "x/y" = ""
  symbol n: 0..
  symbol pos: 0..4096 by 8 at step
  symbol "image:0.1": 0..
  parameter "conv.weight": f32[8, 3, 3, 3] trainable = blob 0
  constant bias: f32[8] = [0.1, -0, 1e-40, inf, 0, 0, 0, 0]
  constant part: f32[4, 3, 3, 3] = blob 0 of f32[8, 3, 3, 3] at [4, 0, 0, 0]
  state cache: f16[1, pos + 1, 64]

  function body(a: f32[n, 8, 26, 26]) {
    %0 = relu(%a) : f32[n, 8, 26, 26]
    return r = %0
  }

  function main("image:0": f32[n, 3, 28, 28], shape: i64[2], odd: sequence<optional<f32[n*floordiv("image:0.1" + 3, 4) - 2]>>) {
    %conv = conv(%"image:0", @"conv.weight", @bias) : f32[n, 8, 26, 26]  from Conv_0: Conv
    %0 "conv" = fused(%conv) {body = @body} : f32[n, 8, 26, 26]  from fuse("Relu 1": Relu, Add_2)
    %1 = reshape(%0) {shape = [n, 5408]} : f32[n, 5408]
    %2 = reshape(%1) {shape = %shape} : f32[*]
    %3 = softmax(%1) {axis = 1} : f32[n, 5408]
    %4 = relayout(%0) {to = f32[n, 8, 26, 26] as "permuted(0,2,3,1)"} : f32[n, 8, 26, 26] as "permuted(0,2,3,1)"
    store @cache = @cache
    return scores = %3, "dynamic/0" = %2, laid = %4, w = @part
  }
}
)text");
}

TEST(TextTest, RoundTripsLossless) {
  const auto m = Sample();
  ASSERT_THAT(Verify(*m), Succeeds());
  const std::string text = ToText(*m);
  const std::vector<Bytes> blobs = BlobsOf(*m);
  ASSERT_EQ(blobs.size(), 1u);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, FromText(text, blobs));
  EXPECT_EQ(ToText(*back), text);
  EXPECT_EQ(back->metadata, m->metadata);
  EXPECT_EQ(back->FindSymbol("pos")->divisor, 8);
  EXPECT_EQ(back->FindSymbol("pos")->when, When::kStep);
  EXPECT_EQ(back->FindVariable("part")->init->bytes.data(), blobs[0].data());
  const auto a = m->FindVariable("bias")->init->bytes.span();
  const auto b = back->FindVariable("bias")->init->bytes.span();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  const Function &f = *m->Find("main"), &g = *back->Find("main");
  ASSERT_EQ(f.nodes().size(), g.nodes().size());
  for (size_t i = 0; i < f.nodes().size(); ++i) {
    EXPECT_EQ(f.nodes()[i].op.ToText(), g.nodes()[i].op.ToText());
    EXPECT_EQ(f.NameOf(f.nodes()[i].first_out), g.NameOf(g.nodes()[i].first_out));
    EXPECT_EQ(f.nodes()[i].from == nullptr, g.nodes()[i].from == nullptr);
    if (f.nodes()[i].from == nullptr) continue;
    EXPECT_EQ(f.nodes()[i].from->ToText(), g.nodes()[i].from->ToText());
  }
}

TEST(TextTest, BoundFunctionsReadTheirVariablesBound) {
  Module m;
  const SymbolRef n = m.SymbolNamed("n");
  Variable* w = m.AddVariable({.name = "w", .type = F32({Dim(n)})});
  Function f("main");
  f.Return("y", f(Relu{}, {f.Read(w)}));
  m.AddFunction("main");
  auto bound = std::make_unique<Function>("main");
  const Bindings bind = {{n, 3}};
  const auto copy = [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); };
  ASSERT_THAT((Rewriter{.pass = "bind", .bind = &bind}.Run(f, *bound, copy)), Succeeds());
  m.Replace("main", std::move(bound));
  const std::string text = ToText(m);
  EXPECT_NE(text.find("read @w: f32[3]"), std::string::npos);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, FromText(text));
  EXPECT_EQ(ToText(*back), text);
}

TEST(TextTest, DataOfEveryTypeIsExact) {
  std::mt19937 random(1);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (t == DType::kString) continue;
    for (int round = 0; round < 50; ++round) {
      std::vector<uint8_t> bytes(*BytesOf(t, 8));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
      Module m;
      const Type type = Type::Tensor(t, {8});
      m.AddVariable({.name = "w", .type = type, .init = Variable::Storage{Bytes(bytes), type, {}}});
      const std::string text = ToText(m);
      FORGE_ASSERT_OK_AND_ASSIGN(const auto back, FromText(text));
      const auto got = back->variables()[0]->init->bytes.span();
      ASSERT_EQ(std::vector<uint8_t>(got.begin(), got.end()), bytes) << text;
      ASSERT_EQ(ToText(*back), text);
    }
  }
}

TEST(TextTest, NumbersRoundTrip) {
  const Number numbers[] = {INT64_MIN,
                            INT64_MAX,
                            (int64_t{1} << 53) + 1,
                            UINT64_MAX,
                            uint64_t{1} << 63,
                            0,
                            -0.0,
                            0.1,
                            -2.5,
                            1e300,
                            0x1p64,
                            -0x1p64,
                            std::numeric_limits<double>::infinity(),
                            -INFINITY,
                            NAN,
                            5e-324,
                            std::complex(1.5, -2.0),
                            std::complex(-0.0, 1e-300),
                            std::complex<double>(0.0, -INFINITY)};
  for (const Number& number : numbers) {
    const std::string text = number.ToText();
    Lexer lexer(text);
    FORGE_ASSERT_OK_AND_ASSIGN(const Number back, lexer.TakeNumber());
    EXPECT_EQ(back, number) << text;
    EXPECT_EQ(lexer.next().kind, Token::kEnd) << text;
  }
  Module m;
  Function& f = *m.AddFunction("main");
  f.Return("y", f(Fill{UINT64_MAX, DType::kU64, {}}, {}));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, FromText(ToText(m)));
  EXPECT_EQ(back->Find("main")->nodes()[0].op.As<Fill>()->value, UINT64_MAX);
}

TEST(TextTest, RandomDimensionsRoundTrip) {
  std::mt19937 random(7);
  Module m;
  const Dim symbols[] = {Dim(m.SymbolNamed("n")),
                         Dim(m.SymbolNamed("h w")),
                         Dim(INT64_MIN),
                         Dim(INT64_MAX),
                         Dim(3),
                         Dim(-2),
                         Dim(16)};
  Function& f = *m.AddFunction("main");
  for (int i = 0; i < 300; ++i) {
    Dim d = symbols[random() % 7];
    for (int k = 0; k < 6; ++k) {
      const Dim other = symbols[random() % 7] + static_cast<int64_t>(random() % 9);
      switch (random() % 7) {
        case 0:
          d = d + other;
          break;
        case 1:
          d = d - other;
          break;
        case 2:
          d = d * other;
          break;
        case 3:
          d = FloorDiv(d, other);
          break;
        case 4:
          d = Mod(other, d);
          break;
        case 5:
          d = Min(d, other);
          break;
        default:
          d = Max(other, d);
          break;
      }
    }
    if (d.max() >= 0) f.Argument(fmt::format("a{}", i), F32({d}));
  }
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, FromText(ToText(m)));
  for (size_t i = 0; i < f.arguments().size(); ++i) {
    const auto type = [&](const Function& g) { return g.type(g.arguments()[i].value).ToText(); };
    ASSERT_EQ(type(*back->Find("main")), type(f));
  }
}

TEST(TextTest, TypesMayBeLeftOut) {
  FORGE_ASSERT_OK_AND_ASSIGN(const auto m, FromText(R"(
    module {  // comments and loose layout are fine
      function main(x: f32[n, 4]) { %y = softmax(%x) return y = %y }
    })"));
  EXPECT_EQ(m->Find("main")->results().size(), 1u);
  EXPECT_NE(m->FindSymbol("n"), nullptr);
}

TEST(TextTest, BodiesMayFollowTheirUsers) {
  FORGE_ASSERT_OK_AND_ASSIGN(const auto m, FromText(R"(module {
    function main(x: f32[4]) { %y = fused(%x) {body = @b} return y = %y }
    function b(x: f32[4]) { %y = relu(%x) return y = %y }
  })"));
  EXPECT_EQ(m->functions()[0]->name(), "main");
}

std::string ErrorOf(std::string_view text, std::span<const Bytes> blobs = {}) {
  const auto m = FromText(text, blobs);
  if (m.ok()) return "no error";
  EXPECT_EQ(m.status().code(), kInvalid) << m.status();
  return std::string(Message(m.status()));
}

TEST(TextTest, ErrorsHaveLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "1:1: expected 'module', found the end"},
      {"module {\n  bogus", "2:3: expected metadata, symbol"},
      {"module { } x", "1:12: expected the end, found 'x'"},
      {"module { metadata a = \"b", "1:23: the string has no end on its line"},
      {"module { metadata a = \"\\q\" }", "1:23: the string has an unknown escape"},
      {"module { symbol n: 3..2 }", "1:17: the symbol has no values"},
      {"module { symbol n: 0.. by 0 }", "1:17: the symbol has no values"},
      {"module { symbol n: 0.. symbol n: 0.. }", "1:31: the symbol 'n' is known already"},
      {"module { symbol n: 9999999999999999999.. }", "does not fit 64 bits"},
      {"module { state s: f31[2] }", "1:19: expected a dtype, found 'f31'"},
      {"module { state s: f32[2 }", "1:25: expected ',', found '}'"},
      {"module { state s: f32[-2] }", "the dimension -2 is negative"},
      {"module { state s: f32[cos(n, 2)] }", "1:23: 'cos' is no function of dimensions"},
      {"module { state s: f32[2] as q9_z }", "1:29: 'q9_z' is no known encoding"},
      {"module { state s: f32[2] state s: f32[2] }", "1:32: the variable name 's'"},
      {"module { constant c: f32[2] = [1] }", "1:33: expected ',', found ']'"},
      {"module { constant c: i8[1] = [200] }", "1:31: 200 does not fit i8"},
      {"module { constant c: u64[1] = [-1] }", "1:32: -1 does not fit u64"},
      {"module { constant c: f32[1] = x\"0000\" }", "expected 4 bytes, found 2"},
      {"module { constant c: f32[1] = x\"0000000g\" }", "expected hexadecimal digits"},
      {"module { constant c: f32[n] = [1] }", "takes no list of elements"},
      {"module { constant c: f32[1099511627776] = [1] }", "too large for a list"},
      {"module { constant c: string[1] = [1] }", "strings cannot be listed"},
      {"module { constant c: f32[2] = blob 0 }", "1:36: blob 0 of 0"},
      {"module { function f( }", "expected '{'"},
      {"module { function f() { ", "expected '}'"},
      {"module { function f() { } function f() { } }", "the function name 'f'"},
      {"module { function f() { %0 = bogus() } }", "1:30: 'bogus' is no op"},
      {"module { function f(x: f32[2]) { %0 = relu(%y) } }", "1:44: %y is not known here"},
      {"module { function f() { %0 = relu(@w) } }", "1:36: no variable 'w'"},
      {"module { function f(x: f32[2]) { %0 = softmax(%x) {axes = 1} } }",
       "softmax has no attribute 'axes'"},
      {"module { function f(x: f32[2]) { %0 = softmax(%x) {axis = 0, axis = 0} } }",
       "'axis' stands twice"},
      {"module { function f(x: f32[2]) { %0 = softmax(%x) {axis = true} } }",
       "expected an integer, found 'true'"},
      {"module { function f(x: f32[2]) { %0 = softmax(%x) {axis = 3} } }",
       "1:39: softmax(x: f32[2]): axis 3"},
      {"module { function f(x: f32[2]) { %0, %1 = relu(%x) } }", "relu has 1 results"},
      {"module { function f(x: f32[2]) { %0 = relu(%x) : f32[3] } }", "the result is f32[2]"},
      {"module { function f(x: f32[2]) { %0 = relu(%x) %0 = relu(%x) } }", "%0 is known already"},
      {"module { function f(x: f32[2]) { return y = %x, y = %x } }", "the result name 'y'"},
      {"module { function f(x: f32[2]) { %0 = fused(%x) {body = @g} } }", "no function 'g'"},
      {"module { function f(x: f32[2]) { %0 = fused(%x) {body = @f} } }", "'f' is within itself"},
      {"module { function f(x: f32[2], x: f32[2]) { } }", "the argument name 'x'"},
      {"module { function f(x: i64[2]) { %0 = reshape(_) } }", "operand x is missing"},
      {"module { metadata a = \"b\" \x01 }", "1:27: expected metadata"},
  };
  for (const auto& [text, part] : cases)
    EXPECT_NE(ErrorOf(text).find(part), std::string::npos) << text << "\n" << ErrorOf(text);
}

TEST(TextTest, NestingIsBounded) {
  const auto repeat = [](std::string_view s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  const std::string deep = "module { state s: f32[" + repeat("(", 100000);
  EXPECT_NE(ErrorOf(deep).find("nested too deeply"), std::string::npos);
  EXPECT_NE(ErrorOf("module { state s: f32[" + repeat("mod(n,", 100000)).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(ErrorOf("module { state s: " + repeat("sequence<", 100000)).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf("module { function f(x: f32[2]) { %0 = relu(%x) from " + repeat("a(", 100000) + "} }")
          .find("nested too deeply"),
      std::string::npos);
  std::string chain = "module {\n";
  for (int i = 0; i < 1000; ++i)
    chain += fmt::format(
        "function f{}(x: f32[2]) {{ %0 = fused(%x) {{body = @f{}}} return y = %0 }}\n", i, i + 1);
  EXPECT_NE(ErrorOf(chain + "}").find("too deep"), std::string::npos);
}

TEST(TextTest, EveryTruncationIsRefused) {
  const auto m = Sample();
  const std::string text = ToText(*m);
  const std::vector<Bytes> blobs = BlobsOf(*m);
  for (size_t n = 0; n < text.find_last_of('}'); ++n) {
    const std::string error = ErrorOf(std::string_view(text).substr(0, n), blobs);
    ASSERT_NE(error, "no error") << n;
    ASSERT_TRUE(error[0] >= '0' && error[0] <= '9') << n << ": " << error;
  }
}

TEST(TextTest, DamagedBytesNeverCrash) {
  const auto m = Sample();
  const std::string text = ToText(*m);
  const std::vector<Bytes> blobs = BlobsOf(*m);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (uint32_t k = 0; k < 1 + random() % 3; ++k) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 5);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), 6));
          break;
        default:
          damaged[at] = "(){}[]%@,:=-9\"*"[random() % 15];
          break;
      }
    }
    const auto parsed = FromText(damaged, blobs);
    if (!parsed.ok()) continue;
    ASSERT_TRUE(FromText(ToText(**parsed), BlobsOf(**parsed)).ok()) << damaged;
  }
}

}  // namespace
}  // namespace forge::ir
