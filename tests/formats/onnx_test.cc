// SPDX-License-Identifier: Apache-2.0
// The importer as a reader of files: structure, names, tensors, damage.
#include <random>

#include "base/dtype.h"
#include "formats/load.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/ops.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::HostValue;
using testing::ElementsAre;

OnnxModel Chain() {
  OnnxModel m;
  m.Input("x", {"n", "3"}).Output("y");
  m.Node("Relu", {"x"}, {"r"});
  m.Node("Exp", {"r"}, {"y"});
  return m;
}

std::string ArgumentType(const ir::Module& m, size_t i) {
  const ir::Function& f = *m.Find("main");
  return f.type(f.arguments()[i].value).ToText();
}

// ---- names, provenance, metadata ----------------------------------------------------------------

TEST(OnnxTest, KeepsNamesProvenanceAndMetadata) {
  OnnxModel m = Chain();
  m.graph().mutable_node(1)->clear_name();
  auto& entry = *m.proto().add_metadata_props();
  entry.set_key("labels");
  entry.set_value("a,b");
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(module->Metadata("labels"), "a,b");
  const ir::Function& f = *module->Find("main");
  ASSERT_EQ(f.nodes().size(), 2u);
  EXPECT_EQ(f.nodes()[0].from->ToText(), "Relu_0 (Relu)");
  EXPECT_EQ(f.nodes()[1].from->ToText(), "(unnamed) -> y (Exp)");
  EXPECT_EQ(f.NameOf(f.nodes()[0].first_out), "r");
  EXPECT_EQ(f.results()[0].name, "y");
  EXPECT_EQ(f.arguments()[0].name, "x");
}

TEST(OnnxTest, GivesInitializersAndConstantsTheirRoles) {
  OnnxModel m;
  m.Input("x", {"2"}).Output("y").Floats("w", {2}, {1, 2});
  auto& value =
      *Attribute(m.Node("Constant", {}, {"c"}), "value", onnx::AttributeProto::TENSOR).mutable_t();
  value.set_data_type(onnx::TensorProto::FLOAT);
  value.add_dims(2);
  value.set_raw_data(std::string("\0\0\x80?\0\0\0@", 8));
  m.Node("Add", {"x", "w"}, {"s"});
  m.Node("Mul", {"s", "c"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(module->FindVariable("w")->role, ir::Variable::Role::kParameter);
  EXPECT_EQ(module->FindVariable("c")->role, ir::Variable::Role::kConstant);
}

TEST(OnnxTest, TakesAnInitializerAsTheDefaultOfAnInput) {
  OnnxModel m = Chain();
  m.Input("w", {"3"}).Floats("w", {3}, {1, 2, 3});
  m.graph().mutable_node(1)->set_op_type("Add");
  m.graph().mutable_node(1)->add_input("w");
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(module->Find("main")->arguments().size(), 1u);
  EXPECT_NE(module->FindVariable("w"), nullptr);
}

TEST(OnnxTest, LeavesOutWhatOnlyStatesShapes) {
  OnnxModel m;
  m.Input("x", {"n", "6"}).Output("y").Ints("shape", {3}, {0, 2, -1});
  m.Node("Reshape", {"x", "shape"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_TRUE(module->variables().empty());
  EXPECT_EQ(module->Find("main")->nodes().size(), 1u);
}

TEST(OnnxTest, RefusesAShapeThatIsNoList) {
  OnnxModel m;
  m.Input("x", {"n", "6"}).Output("y").Ints("shape", {1, 3}, {0, 2, -1});
  m.Node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "the length of its shape is not known"));
}

TEST(OnnxTest, SortsNodesThatAreOutOfOrder) {
  OnnxModel m = Chain();
  m.graph().mutable_node()->SwapElements(0, 1);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(module->Find("main")->nodes()[0].op.name(), "relu");
}

// ---- dimensions ---------------------------------------------------------------------------------

TEST(OnnxTest, SharesSymbolsByNameOnly) {
  OnnxModel m;
  m.Input("a", {"n", "?", "", "n"}).Input("b", {"n", "?"}).Output("y");
  m.graph()
      .mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(-1);
  m.Node("Relu", {"a"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(ArgumentType(*module, 0), "f32[n, \"a.1\", \"a.2\", n]");
  EXPECT_EQ(ArgumentType(*module, 1), "f32[n, \"b.1\", \"b.2\"]");
}

TEST(OnnxTest, NeverGivesAnAnonymousDimensionAStatedName) {
  OnnxModel m;
  m.Input("a", {"?"}).Input("b", {"a.0"}).Output("y");
  m.Node("Relu", {"a"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_NE(ArgumentType(*module, 0), ArgumentType(*module, 1));
}

TEST(OnnxTest, RefusesNegativeAndOverflowingDimensions) {
  OnnxModel negative;
  negative.Input("x", {"-2"}).Output("y");
  negative.Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(negative.Import(), Fails(StatusCode::kDataLoss, "'x': dimension 0 is -2"));
  OnnxModel large;
  large.Input("x", {"4294967296", "n", "4294967296"}).Output("y");
  large.Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(large.Import(), Fails(StatusCode::kDataLoss, "exceeds 64 bits"));
}

TEST(OnnxTest, TakesShapesFromOptions) {
  OnnxModel m = Chain();
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import({.shapes = {{"x", {"5", "3"}}}}));
  EXPECT_EQ(ArgumentType(*module, 0), "f32[5, 3]");
  EXPECT_THAT(m.Import({.shapes = {{"x", {"5", "4"}}}}),
              Fails(StatusCode::kInvalidArgument, "dimension 1 is 3, not 4"));
  EXPECT_THAT(m.Import({.shapes = {{"x", {"5"}}}}),
              Fails(StatusCode::kInvalidArgument, "2 dimensions, not 1"));
  EXPECT_THAT(m.Import({.shapes = {{"z", {"5"}}}}),
              Fails(StatusCode::kInvalidArgument, "no input 'z'"));
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "--shape x="));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto given, m.Import({.shapes = {{"x", {"k", "3"}}}}));
  EXPECT_EQ(ArgumentType(*given, 0), "f32[k, 3]");
}

// ---- initialisers -------------------------------------------------------------------------------

// The elements of an initialiser `w` by way of the module.
absl::StatusOr<HostValue> Weight(OnnxModel& m) {
  m.Output("y");
  m.Node("Identity", {"w"}, {"y"});
  FORGE_ASSIGN_OR_RETURN(const auto module, m.Import());
  const ir::Variable& v = *module->FindVariable("w");
  return HostValue::Of(v.type.dtype(), ir::Constants(v.type.shape()), v.init->bytes);
}

using Fill = void (*)(onnx::TensorProto&);

struct TypedCase {
  int32_t type;
  DType dtype;
  Fill fill;
  std::vector<uint8_t> bytes;
};

TEST(OnnxTensorTest, ReadsEveryTypedField) {
  using T = onnx::TensorProto;
  const TypedCase cases[] = {
      {T::FLOAT,
       DType::kF32,
       [](T& t) {
         t.add_float_data(1);
         t.add_float_data(0);
       },
       {0, 0, 0x80, 0x3f, 0, 0, 0, 0}},
      {T::DOUBLE,
       DType::kF64,
       [](T& t) {
         t.add_double_data(1);
         t.add_double_data(0);
       },
       {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0}},
      {T::COMPLEX64,
       DType::kC64,
       [](T& t) {
         for (float v : {1.f, 0.f, 0.f, 1.f}) t.add_float_data(v);
       },
       {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}},
      {T::INT64,
       DType::kI64,
       [](T& t) {
         t.add_int64_data(-1);
         t.add_int64_data(2);
       },
       {255, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0}},
      {T::UINT64,
       DType::kU64,
       [](T& t) {
         t.add_uint64_data(1);
         t.add_uint64_data(2);
       },
       {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}},
      {T::UINT32,
       DType::kU32,
       [](T& t) {
         t.add_uint64_data(0xffffffff);
         t.add_uint64_data(2);
       },
       {255, 255, 255, 255, 2, 0, 0, 0}},
      {T::INT32,
       DType::kI32,
       [](T& t) {
         t.add_int32_data(-2);
         t.add_int32_data(2);
       },
       {254, 255, 255, 255, 2, 0, 0, 0}},
      {T::INT16,
       DType::kI16,
       [](T& t) {
         t.add_int32_data(-32768);
         t.add_int32_data(2);
       },
       {0, 0x80, 2, 0}},
      {T::UINT16,
       DType::kU16,
       [](T& t) {
         t.add_int32_data(65535);
         t.add_int32_data(2);
       },
       {255, 255, 2, 0}},
      {T::INT8,
       DType::kI8,
       [](T& t) {
         t.add_int32_data(-128);
         t.add_int32_data(127);
       },
       {0x80, 0x7f}},
      {T::UINT8,
       DType::kU8,
       [](T& t) {
         t.add_int32_data(255);
         t.add_int32_data(0);
       },
       {255, 0}},
      {T::BOOL,
       DType::kBool,
       [](T& t) {
         t.add_int32_data(1);
         t.add_int32_data(0);
       },
       {1, 0}},
      {T::FLOAT16,
       DType::kF16,
       [](T& t) {
         t.add_int32_data(0x3c00);
         t.add_int32_data(0xbc00);
       },
       {0, 0x3c, 0, 0xbc}},
      {T::BFLOAT16,
       DType::kBF16,
       [](T& t) {
         t.add_int32_data(0x3f80);
         t.add_int32_data(0);
       },
       {0x80, 0x3f, 0, 0}},
      {17,
       DType::kF8E4M3,
       [](T& t) {
         t.add_int32_data(0x38);
         t.add_int32_data(0xb8);
       },
       {0x38, 0xb8}},
      {21, DType::kU4, [](T& t) { t.add_int32_data(0x2f); }, {0x2f}},
      {22, DType::kI4, [](T& t) { t.add_int32_data(0x2f); }, {0x2f}},
  };
  for (const TypedCase& c : cases) {
    OnnxModel m;
    c.fill(m.Initializer("w", c.type, {2}));
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue w, Weight(m));
    EXPECT_EQ(w.dtype(), c.dtype);
    EXPECT_THAT(w.bytes(), testing::ElementsAreArray(c.bytes)) << Name(c.dtype);
    OnnxModel raw;
    raw.Initializer("w", c.type, {2}).set_raw_data(std::string(c.bytes.begin(), c.bytes.end()));
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v, Weight(raw));
    EXPECT_THAT(v.bytes(), testing::ElementsAreArray(c.bytes)) << Name(c.dtype);
  }
}

TEST(OnnxTensorTest, MakesBooleansZeroOrOne) {
  OnnxModel m;
  m.Initializer("w", onnx::TensorProto::BOOL, {3}).set_raw_data(std::string("\x00\x01\x80", 3));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue w, Weight(m));
  EXPECT_THAT(w.bytes(), ElementsAre(0, 1, 1));
}

TEST(OnnxTensorTest, RefusesDataThatDoesNotFit) {
  using T = onnx::TensorProto;
  const auto refuses = [](int32_t type, std::vector<int64_t> dims, Fill fill,
                          std::string_view message) {
    OnnxModel m;
    fill(m.Initializer("w", type, std::move(dims)));
    const auto weight = Weight(m);
    EXPECT_THAT(weight, Fails(StatusCode::kDataLoss, message));
    EXPECT_THAT(weight, Fails(StatusCode::kDataLoss, "initializer 'w'"));
  };
  const Fill none = [](T&) {};
  refuses(T::FLOAT, {2}, none, "has 0 bytes");
  refuses(T::FLOAT, {2}, [](T& t) { t.set_raw_data("1234567"); }, "raw_data has 7 bytes");
  refuses(T::FLOAT, {-1}, none, "dimension -1 is negative");
  refuses(T::FLOAT, {int64_t{1} << 32, int64_t{1} << 32}, none, "exceeds 64 bits");
  refuses(T::FLOAT, {int64_t{1} << 62}, none, "exceeds 64 bits");
  refuses(
      T::INT8, {1}, [](T& t) { t.add_int32_data(300); },
      "element 0 is 300, outside the range of i8");
  refuses(T::INT8, {1}, [](T& t) { t.add_int32_data(-300); }, "outside the range of i8");
  refuses(T::INT64, {1}, [](T& t) { t.add_int32_data(3); }, "has 0 bytes");
  refuses(T::STRING, {1}, [](T& t) { t.set_raw_data("a"); }, "neither raw nor external");
  refuses(T::UNDEFINED, {1}, none, "unknown element type 0");
  refuses(999, {1}, none, "unknown element type 999");
  refuses(24, {1}, none, "unknown element type 24");
  refuses(
      T::FLOAT, {1},
      [](T& t) {
        t.set_raw_data("1234");
        t.add_float_data(1);
      },
      "both raw and typed");
  refuses(T::FLOAT, {1}, [](T& t) { t.mutable_segment()->set_begin(0); }, "segments");
}

TEST(OnnxTest, RefusesSparseInitializers) {
  OnnxModel m = Chain();
  m.graph().add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "initializer 's' is sparse"));
}

// ---- external data ------------------------------------------------------------------------------

OnnxModel WithExternal(const std::string& location, const std::string& offset = "",
                       const std::string& length = "") {
  OnnxModel m;
  m.Output("y");
  m.Node("Identity", {"w"}, {"y"});
  onnx::TensorProto& w = m.Initializer("w", onnx::TensorProto::UINT16, {3});
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](std::string key, const std::string& value) {
    if (value.empty()) return;
    auto& entry = *w.add_external_data();
    entry.set_key(std::move(key));
    entry.set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
  return m;
}

TEST(OnnxExternalTest, MapsDataBesideTheModel) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  folder.Write("sub/w.bin", "0123456789");
  for (const char* location : {"sub/w.bin", "./sub/../sub/w.bin"}) {
    const auto path = folder.Write("m.onnx", WithExternal(location, "4", "6").File());
    FORGE_ASSERT_OK_AND_ASSIGN(const auto module, ImportOnnx(path));
    EXPECT_THAT(module->FindVariable("w")->init->bytes.span(),
                ElementsAre('4', '5', '6', '7', '8', '9'));
  }
}

TEST(OnnxExternalTest, MovesMisalignedData) {
  const TempFolder folder;
  folder.Write("w.bin", "0123456789");
  const auto path = folder.Write("m.onnx", WithExternal("w.bin", "3").File());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, ImportOnnx(path));
  const auto bytes = module->FindVariable("w")->init->bytes.span();
  EXPECT_THAT(bytes, ElementsAre('3', '4', '5', '6', '7', '8'));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 2, 0u);
}

TEST(OnnxExternalTest, RefusesMissingShortAndOutsideFiles) {
  const TempFolder outer;
  const std::filesystem::path folder = outer / "model";
  std::filesystem::create_directory(folder);
  outer.Write("secret", "0123456789");
  outer.Write("model/w.bin", "0123456789");
  std::filesystem::create_symlink(outer / "secret", folder / "link");
  std::filesystem::create_directory_symlink(outer.path(), folder / "up");
  const auto refuses = [&](const OnnxModel& m, std::string_view message) {
    EXPECT_THAT(ImportOnnx(outer.Write("model/m.onnx", m.File())),
                Fails(StatusCode::kDataLoss, message));
  };
  refuses(WithExternal("missing"), "external data 'missing'");
  refuses(WithExternal("w.bin", "6"), "'w.bin' has 10 bytes, too few for 6 at 6");
  refuses(WithExternal("w.bin", "18446744073709551615"), "too few");
  refuses(WithExternal("w.bin", "18446744073709551616"), "offset");
  refuses(WithExternal("w.bin", "-1"), "offset '-1'");
  refuses(WithExternal("w.bin", "0", "5"), "has 5 bytes");
  refuses(WithExternal("w.bin", "0", "x"), "length 'x'");
  refuses(WithExternal(""), "outside the model's folder");
  refuses(WithExternal("."), "external data '.'");
  refuses(WithExternal("../secret"), "'../secret' is outside the model's folder");
  refuses(WithExternal("../../etc/passwd"), "outside the model's folder");
  refuses(WithExternal("a/../../secret"), "outside the model's folder");
  refuses(WithExternal("/etc/passwd"), "outside the model's folder");
  refuses(WithExternal("link"), "'link' is outside the model's folder");
  refuses(WithExternal("up/secret"), "outside the model's folder");
  EXPECT_THAT(ImportBytes(WithExternal("w.bin").File()),
              Fails(StatusCode::kDataLoss, "was not read from a folder"));
}

// ---- graphs that make no sense ------------------------------------------------------------------

TEST(OnnxTest, NamesANodeOfACycle) {
  OnnxModel m;
  m.Input("x", {"2"}).Output("y");
  m.Node("Relu", {"x"}, {"r"});
  m.Node("Add", {"r", "c"}, {"a"});
  m.Node("Relu", {"a"}, {"b"});
  m.Node("Relu", {"b"}, {"c"});
  m.Node("Relu", {"c"}, {"y"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "the graph has a cycle"));
  OnnxModel self;
  self.Input("x", {"2"}).Output("y");
  self.Node("Add", {"x", "y"}, {"y"});
  EXPECT_THAT(self.Import(), Fails(StatusCode::kDataLoss, "node 'Add_0' (Add) depends on"));
}

TEST(OnnxTest, RefusesInconsistentGraphs) {
  const auto refuses = [](void (*change)(OnnxModel&), std::string_view message) {
    OnnxModel m = Chain();
    change(m);
    EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, message));
  };
  refuses([](OnnxModel& m) { m.graph().mutable_node(1)->set_input(0, "q"); },
          "node 'Exp_1' (Exp) reads 'q', which is not defined");
  refuses([](OnnxModel& m) { m.graph().mutable_node(1)->set_output(0, "r"); },
          "node 'Exp_1' defines 'r', which is already defined");
  refuses([](OnnxModel& m) { m.graph().mutable_node(1)->set_output(0, "x"); }, "already defined");
  refuses([](OnnxModel& m) { m.Input("x", {"3"}); }, "input 'x' is declared twice");
  refuses([](OnnxModel& m) { m.Floats("w", {1}, {1}).Floats("w", {1}, {1}); }, "given twice");
  refuses([](OnnxModel& m) { m.Output("z"); }, "output 'z' is not defined by any node");
  refuses([](OnnxModel& m) { m.Output("y"); }, "'y' is empty or used twice");
  refuses([](OnnxModel& m) { m.graph().clear_output(); }, "no output");
  refuses([](OnnxModel& m) { m.graph().mutable_node(0)->add_input("x"); },
          "node 'Relu_0' (Relu): it has 2 inputs instead of 1 to 1");
  refuses([](OnnxModel& m) { m.graph().mutable_node(0)->set_input(0, ""); }, "input 0 is not");
  refuses([](OnnxModel& m) { Set(*m.graph().mutable_node(0), "slope", int64_t{1}); },
          "attribute 'slope' is not an attribute of Relu");
  refuses(
      [](OnnxModel& m) {
        m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
            onnx::TensorProto::INT64);
      },
      "output 'y' is f32");
  refuses([](OnnxModel& m) { m.proto().clear_opset_import(); }, "it has no opset");
  refuses([](OnnxModel& m) { m.proto().mutable_opset_import(0)->set_version(99); }, "opset 99");
  refuses([](OnnxModel& m) { m.proto().mutable_opset_import(0)->set_version(0); }, "opset 0");
  refuses([](OnnxModel& m) { m.proto().set_ir_version(15); }, "IR version 15");
  refuses([](OnnxModel& m) { m.proto().clear_graph(); }, "it has no graph");
  refuses([](OnnxModel& m) { m.graph().mutable_input(0)->mutable_type()->mutable_sequence_type(); },
          "neither a tensor, nor a sequence");
  refuses(
      [](OnnxModel& m) {
        m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
            onnx::TensorProto::STRING);
      },
      "operand x is string");
}

TEST(OnnxTest, ListsEveryOperatorThatIsNotSupported) {
  OnnxModel m = Chain();
  m.Node("Frobnicate", {"x"}, {"a"});
  m.Node("Frobnicate", {"a"}, {"b"}).set_name("");
  m.Node("Imagine", {"x"}, {"c"});
  m.Node("Fused", {"x"}, {"d"}).set_domain("com.example");
  m.proto().add_opset_import()->set_domain("com.example");
  m.proto().mutable_opset_import(1)->set_version(3);
  const auto result = m.Import();
  ASSERT_EQ(result.status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(
      Message(result.status()),
      "m.onnx: 3 operators are not supported: Frobnicate (opset 17, 2 nodes, first "
      "'Frobnicate_2'), Imagine (opset 17, 1 node, first 'Imagine_4'), com.example.Fused (opset 3, "
      "1 node, first 'Fused_5')");
}

TEST(OnnxTest, FindsUnknownOperatorsInBodies) {
  OnnxModel m = Chain();
  auto& body = *Attribute(m.Node("If", {"x"}, {"a"}), "then_branch", onnx::AttributeProto::GRAPH)
                    .mutable_g();
  body.add_node()->set_op_type("Inner");
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "Inner (opset 17"));
}

TEST(OnnxTest, KnowsAnOperatorFromItsFirstOpsetOn) {
  OnnxModel m(13);
  m.Input("x", {"2"}).Output("y");
  m.Node("HardSwish", {"x"}, {"y"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "HardSwish (opset 13"));
}

TEST(OnnxTest, ReportsOperators) {
  const TempFolder folder;
  OnnxModel m = Chain();
  m.Node("Frobnicate", {"x"}, {"a"});
  m.Node("Relu", {"x"}, {"b"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto uses, ListOnnxOperators(folder.Write("m.onnx", m.File())));
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[1].name, "Frobnicate");
  EXPECT_EQ(uses[1].since, 0);
  EXPECT_EQ(uses[2].count, 2);
  EXPECT_EQ(uses[2].since, 1);
}

TEST(OnnxTableTest, IsSortedAndComplete) {
  const auto ops = formats::OnnxOps();
  for (size_t i = 1; i < ops.size(); ++i)
    EXPECT_LT(std::tie(ops[i - 1].domain, ops[i - 1].name, ops[i - 1].since),
              std::tie(ops[i].domain, ops[i].name, ops[i].since));
  EXPECT_EQ(formats::FindOnnxOp("ai.onnx", "Softmax", 12)->since, 1);
  EXPECT_EQ(formats::FindOnnxOp("", "Softmax", 13)->since, 13);
  EXPECT_EQ(formats::FindOnnxOp("ai.onnx.ml", "Softmax", 13), nullptr);
}

// ---- damage -------------------------------------------------------------------------------------

TEST(OnnxTest, RefusesEmptyAndForeignFiles) {
  EXPECT_THAT(ImportBytes(""), Fails(StatusCode::kDataLoss, "m.onnx: not an ONNX model"));
  EXPECT_THAT(ImportBytes("GIF89a..."), Fails(StatusCode::kDataLoss, "not an ONNX model"));
  EXPECT_THAT(ImportOnnx("/nonexistent.onnx"), Fails(StatusCode::kNotFound, "nonexistent"));
}

// Relu of x within so many branches, each of which is taken.
OnnxModel Nested(int bodies) {
  const auto body = [](onnx::NodeProto node) {
    node.add_output("y");
    onnx::GraphProto graph;
    graph.add_output()->set_name("y");
    *graph.add_node() = std::move(node);
    return graph;
  };
  onnx::NodeProto node;
  node.set_op_type("Relu");
  node.add_input("x");
  for (int i = 0; i < bodies; ++i) {
    onnx::NodeProto branch;
    branch.set_op_type("If");
    branch.add_input("yes");
    onnx::GraphProto graph = body(std::move(node));
    *Attribute(branch, "else_branch", onnx::AttributeProto::GRAPH).mutable_g() =
        body(OnnxModel().Node("Neg", {"x"}, {}));
    Attribute(branch, "then_branch", onnx::AttributeProto::GRAPH).mutable_g()->Swap(&graph);
    node = std::move(branch);
  }
  OnnxModel m;
  m.Input("x", {"2"}).Input("yes", {}, onnx::TensorProto::BOOL).Output("y");
  node.add_output("y");
  m.graph().add_node()->Swap(&node);
  return m;
}

TEST(OnnxTest, BodiesReadTheWeightsOfTheGraph) {
  OnnxModel m;
  m.Input("x", {"2"}).Input("yes", {}, onnx::TensorProto::BOOL).Floats("w", {2}, {3, 4});
  m.Node("Add", {"x", "w"}, {"sum"});
  onnx::NodeProto& node = m.Node("If", {"yes"}, {"y"});
  m.Output("y");
  for (const char* branch : {"then_branch", "else_branch"}) {
    OnnxModel body;
    body.Node(branch[0] == 't' ? "Mul" : "Sub", {"sum", "w"}, {"z"});
    body.Output("z");
    *Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g() = body.graph();
  }
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(module->variables().size(), 1u);
}

TEST(OnnxTest, BodiesNestAsDeepAsTheLimit) {
  const auto out = ImportAndRun(
      Nested(64), {FloatTensor({2}, {-1, 2}), ir::HostValue::Scalar(DType::kBool, Number(1))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].f64(0), 0);
  EXPECT_EQ((*out)[0].f64(1), 2);
  EXPECT_THAT(Nested(2000).Import(), Fails(StatusCode::kDataLoss, "nested more than 64 deep"));
}

OnnxModel Classifier() {
  OnnxModel m;
  m.Input("x", {"n", "2", "5", "5"}).Output("y").Floats("w", {3, 2, 3, 3}, std::vector<float>(54));
  m.Ints("shape", {2}, {0, -1}).Floats("m", {27, 4}, std::vector<float>(108));
  m.Node("Conv", {"x", "w"}, {"a"});
  m.Node("Relu", {"a"}, {"b"});
  m.Node("Reshape", {"b", "shape"}, {"c"});
  m.Node("MatMul", {"c", "m"}, {"d"});
  m.Node("Softmax", {"d"}, {"y"});
  return m;
}

TEST(OnnxTest, RefusesTruncationAtTenPlaces) {
  const std::string good = Classifier().File();
  ASSERT_THAT(ImportBytes(good), Succeeds());
  for (size_t i = 1; i <= 10; ++i)
    EXPECT_THAT(ImportBytes(good.substr(0, i * good.size() / 11)),
                Fails(StatusCode::kDataLoss, "m.onnx"));
}

TEST(OnnxTest, SurvivesBitFlips) {
  const std::string good = Classifier().File();
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    std::string file = good;
    const size_t at = random() % file.size();
    file[at] = static_cast<char>(file[at] ^ (1 << random() % 8));
    const auto module = ImportBytes(file);
    EXPECT_TRUE(module.ok() || module.status().code() == StatusCode::kDataLoss)
        << at << " " << module.status().ToString();
  }
}

// ---- LoadModel ----------------------------------------------------------------------------------

TEST(LoadModelTest, TellsModelsByContent) {
  const TempFolder folder;
  const auto onnx_file = folder.Write("m.onnx", Chain().File());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, LoadModel(onnx_file));
  EXPECT_THAT(LoadModel(folder.Write("model", Chain().File())), Succeeds());
  ASSERT_THAT(WriteModel(*module, folder / "any.name"), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto back, LoadModel(folder / "any.name"));
  EXPECT_EQ(ir::ToText(*back), ir::ToText(*module));
  EXPECT_THAT(LoadModel(folder / "any.name", {.onnx = {.shapes = {{"x", {"1", "3"}}}}}),
              Fails(StatusCode::kInvalidArgument, "converted"));
}

TEST(LoadModelTest, RefusesWhatIsNoModel) {
  const TempFolder folder;
  EXPECT_THAT(LoadModel(folder.Write("a.txt", "hello")), Fails(StatusCode::kDataLoss, "neither"));
  EXPECT_THAT(LoadModel(folder.Write("a.bin", "")), Fails(StatusCode::kDataLoss, "too few"));
  EXPECT_THAT(LoadModel(folder.Write("a.onnx", "")), Fails(StatusCode::kDataLoss, "not an ONNX"));
  EXPECT_THAT(LoadModel(folder.path()), Fails(StatusCode::kDataLoss, "folder"));
  EXPECT_THAT(LoadModel(folder / "none"), Fails(StatusCode::kNotFound, "none"));
}

}  // namespace
}  // namespace forge
