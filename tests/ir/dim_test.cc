// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "ir/dim/broadcast.h"
#include "ir/dim/interval.h"
#include "ir/type/type.h"

namespace forge::ir {
namespace {

SymbolRef MakeSymbol(std::string name, int64_t min = 0, int64_t max = INT64_MAX,
                     int64_t divisor = 1, When when = When::kBind) {
  return std::make_shared<Symbol>(Symbol{std::move(name), min, max, divisor, when});
}

class DimTest : public ::testing::Test {
 protected:
  const SymbolRef n_ = MakeSymbol("n"), h_ = MakeSymbol("h", 1), w_ = MakeSymbol("w", 1);
  const SymbolRef i_ = MakeSymbol("i", 0, 3), j_ = MakeSymbol("j", 0, 11);
  const SymbolRef q_ = MakeSymbol("q", 0, 4096, 8);
  const Dim n{n_}, h{h_}, w{w_}, i{i_}, j{j_}, q{q_};
};

TEST_F(DimTest, EqualExpressionsAreEqual) {
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(h * w + w * h, w * h * 2);
  EXPECT_EQ(n - n, 0);
  EXPECT_EQ((n + h) - h, n);
  EXPECT_EQ((n + h).Hash(), (h + n).Hash());
  EXPECT_NE(n + 1, n);
  EXPECT_NE(n, Dim(MakeSymbol("n"))) << "another symbol of the same name";
}

TEST_F(DimTest, TextReads) {
  EXPECT_EQ((n * 2 + FloorDiv(h, 2)).ToText(), "2*n + floordiv(h, 2)");
  EXPECT_EQ((n * h - n * 3 - 1).ToText(), "h*n - 3*n - 1");
  EXPECT_EQ((Dim(5) - n).ToText(), "-n + 5");
  EXPECT_EQ(Min(n, h * 2).ToText(), "min(2*h, n)");
  EXPECT_EQ(Dim(MakeSymbol("x:0/batch")).ToText(), "\"x:0/batch\"");
}

TEST_F(DimTest, FloorDivTakesOutMultiples) {
  EXPECT_EQ(FloorDiv(n * 4 + i, 4), n);
  EXPECT_EQ(Mod(n * 4 + i, 4), i);
  EXPECT_EQ(FloorDiv(n * 6 + 3, 3), n * 2 + 1);
  EXPECT_EQ(FloorDiv(n * 2 + 1, 4), FloorDiv(n, 2));
  EXPECT_EQ(FloorDiv(n - 1, 2), FloorDiv(n + 1, 2) - 1);
  EXPECT_EQ(FloorDiv(FloorDiv(n, 2), 3), FloorDiv(n, 6));
  EXPECT_EQ(Mod(Mod(n, 12), 4), Mod(n, 4));
  EXPECT_EQ(Mod(n * 4 + 6, 4), 2);
}

TEST_F(DimTest, BlocksAreDividedWhole) {
  EXPECT_EQ(FloorDiv(n * 4 + i, 40), FloorDiv(n, 10));
  EXPECT_EQ(Mod(n * 4 + i, 40), Mod(n, 10) * 4 + i);
  EXPECT_EQ(FloorDiv(h * 8 + i * 2, 24), FloorDiv(h, 3));
  EXPECT_EQ(Mod(n * 4 + i + 8, 40), Mod(n + 2, 10) * 4 + i);
  EXPECT_EQ(Mod(n * 4 + i + 1, 40).part().op, Dim::Op::kMod);  // may reach the next block
  EXPECT_EQ(Mod(n * 4 + i, 42).part().op, Dim::Op::kMod);
}

TEST_F(DimTest, QuotientsOfUnboundedNumbersStay) {
  const Dim large{MakeSymbol("large", int64_t{1} << 62)};
  EXPECT_FALSE(FloorDiv(large * 3, int64_t{1} << 62).is_constant());
}

TEST_F(DimTest, RemaindersOfNegativeNumbersStayBelowTheDivisor) {
  const Dim any{MakeSymbol("any", -5, 100)}, divisor{MakeSymbol("divisor", 1, 7)};
  EXPECT_EQ(Mod(any, divisor).min(), 0);
  EXPECT_EQ(Mod(any, divisor).max(), 6);
}

TEST_F(DimTest, QuotientAndRemainderJoin) {
  EXPECT_EQ(FloorDiv(FloorDiv(n, 3), 5) * 5 + Mod(FloorDiv(n, 3), 5), FloorDiv(n, 3));
  EXPECT_EQ(FloorDiv(n, 4) * 4 + Mod(n, 4), n);
  EXPECT_EQ(FloorDiv(n, w) * w + Mod(n, w), n);
  EXPECT_EQ(FloorDiv(n, h * w) * h * w + Mod(n, h * w), n);
  EXPECT_EQ(FloorDiv(n, 12) * 12 + FloorDiv(Mod(n, 12), 4) * 4 + Mod(n, 4), n);
  EXPECT_EQ((FloorDiv(n, 4) * 4 + Mod(n, 4)) * h * 3 + 7, n * h * 3 + 7);
}

// Places in rows and columns, and what is left of them when rows follow each other in memory.
TEST_F(DimTest, DigitsJoin) {
  EXPECT_EQ(Mod(FloorDiv(n, 7), 5) * 7 + Mod(n, 7), Mod(n, 35));
  EXPECT_EQ((Mod(FloorDiv(n, 7), 5) * 7 + Mod(n, 7)) * h * 3 + 2, Mod(n, 35) * h * 3 + 2);
  EXPECT_EQ(Mod(FloorDiv(n, 35), 3) * 35 + Mod(FloorDiv(n, 7), 5) * 7 + Mod(n, 7), Mod(n, 105));
  EXPECT_EQ(FloorDiv(n, 35) * 35 + Mod(FloorDiv(n, 7), 5) * 7 + Mod(n, 7), n);
  EXPECT_EQ(
      FloorDiv(n, 6440) * 25760 + Mod(FloorDiv(n * 4 + i, 161), 160) * 161 + Mod(n * 4 + i, 161),
      n * 4 + i);
  const Dim gap = Mod(FloorDiv(n, 7), 5) * 8 + Mod(n, 7);  // rows of 8, of which 7 are used
  EXPECT_EQ(gap.Evaluate({{n_, 34}}).value(), 38);
}

TEST_F(DimTest, SymbolicDivisors) {
  EXPECT_EQ(FloorDiv(n * h * w, h * w), n);
  EXPECT_EQ(FloorDiv(n * h * w, h * w * 2), FloorDiv(n, 2));
  EXPECT_EQ(FloorDiv(n * w, w), n);
  EXPECT_EQ(Mod(n * h * w, w), 0);
  EXPECT_EQ(FloorDiv(h, h), 1);
  EXPECT_EQ(FloorDiv(w * n + w, w), n + 1);
}

TEST_F(DimTest, DivisorsAreProven) {
  EXPECT_EQ(q.divisor(), 8);
  EXPECT_EQ((q * 3).divisor(), 24);
  EXPECT_EQ((q + 12).divisor(), 4);
  EXPECT_EQ(FloorDiv(q, 4).divisor(), 2);
  EXPECT_EQ(FloorDiv(q, 4) * 4, q);
  EXPECT_EQ(Mod(q, 8), 0);
  EXPECT_EQ(Mod(q + i, 4), i);
  EXPECT_EQ(Dim(0).divisor() % 256, 0);
  EXPECT_GE(Dim(INT64_MIN).divisor(), 1);
}

TEST_F(DimTest, BoundsAreProven) {
  EXPECT_EQ(i.max(), 3);
  EXPECT_EQ((i * 4 + j).max(), 23);
  EXPECT_EQ((Dim(0) - i).min(), -3);
  EXPECT_EQ(n.max(), INT64_MAX);
  EXPECT_EQ((n - 5).max(), INT64_MAX) << "infinity stays";
  EXPECT_EQ((n + 5).min(), 5);
  EXPECT_EQ(FloorDiv(n, 4).max(), INT64_MAX / 4);
  EXPECT_EQ(Mod(n, 10).max(), 9);
  EXPECT_EQ(Min(n, 7).max(), 7);
  EXPECT_EQ(Max(n, 7).min(), 7);
}

TEST_F(DimTest, MinAndMaxAreDecidedByBounds) {
  EXPECT_EQ(Min(n + 1, n), n);
  EXPECT_EQ(Max(n + 1, n), n + 1);
  EXPECT_EQ(Min(i, 3), i);
  EXPECT_EQ(Max(h, 1), h);
  EXPECT_EQ(Min(n, h), Min(h, n));
}

TEST_F(DimTest, KnownWhenTheLatestPartIs) {
  const Dim pos{MakeSymbol("pos", 0, 4095, 1, When::kStep)};
  EXPECT_EQ(Dim(3).when(), When::kBuild);
  EXPECT_EQ((n + 3).when(), When::kBind);
  EXPECT_EQ((n + FloorDiv(pos, 2)).when(), When::kStep);
}

TEST_F(DimTest, EvaluateNamesWhatIsUnbound) {
  EXPECT_EQ(*(n * 2 + 1).Evaluate({{n_, 20}}), 41);
  auto r = (n + h).Evaluate({{n_, 1}});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(r.status()).find("h is not bound"), std::string_view::npos);
}

TEST_F(DimTest, OverflowIsReportedByEvaluate) {
  const Dim most = INT64_MAX;
  for (const Dim& d : {most + 1, most * 2, Dim(INT64_MIN) - 1, Dim(INT64_MIN) * -1, most * most}) {
    EXPECT_FALSE(d.is_constant());
    EXPECT_EQ(d.Evaluate({}).status().code(), absl::StatusCode::kOutOfRange) << d.ToText();
  }
  EXPECT_EQ((n * n).Evaluate({{n_, INT64_MAX}}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*(n * n - n * n + n).Evaluate({{n_, INT64_MAX}}), INT64_MAX);
  EXPECT_EQ((n * INT64_MAX * 3).Evaluate({{n_, 1}}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Product(Dims(100, most)).Evaluate({}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(DimTest, DivisionByZeroIsReported) {
  for (const Dim& d : {FloorDiv(n, 0), Mod(n, 0), FloorDiv(5, Dim(0)), FloorDiv(n, -2)})
    EXPECT_EQ(d.Evaluate({{n_, 4}}).status().code(), absl::StatusCode::kOutOfRange) << d.ToText();
  EXPECT_EQ(FloorDiv(5, n).Evaluate({{n_, 0}}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(DimTest, BindSimplifies) {
  const Dim d = FloorDiv(n * h + 3, 4) + Min(n, w);
  EXPECT_EQ(d.Bind({{n_, 4}, {w_, 9}}), h + 4);
  EXPECT_EQ(d.Bind({{n_, 4}, {h_, 1}, {w_, 2}}), 3);
  EXPECT_EQ(d.Bind({}), d);
  EXPECT_EQ(d.Substitute({{n_, h * 4}, {w_, 0}}), h * h);
}

TEST_F(DimTest, CollectsSymbolsOnceInOrder) {
  std::vector<SymbolRef> symbols;
  (h * n + FloorDiv(h, w) + n).CollectSymbols(symbols);
  EXPECT_EQ(symbols, (std::vector<SymbolRef>{h_, n_, w_}));
}

TEST_F(DimTest, PartsGoDownToSymbolsAndConstants) {
  const auto sum = (n * 2 + h + 7).part();
  ASSERT_EQ(sum.op, Dim::Op::kAdd);
  ASSERT_EQ(sum.operands.size(), 3u);
  const auto product = sum.operands[1].part();
  EXPECT_EQ(product.op, Dim::Op::kMul);
  EXPECT_EQ(product.operands.back(), 2);
  EXPECT_EQ(product.operands[0].part().symbol, n_);
  EXPECT_EQ(FloorDiv(n, 3).part().op, Dim::Op::kFloorDiv);
}

// Doubling and nesting, as a hostile file may ask for, must stay fast and end in an overflow.
TEST_F(DimTest, HostileExpressionsStaySmall) {
  Dim wide = FloorDiv(n, 3), deep = n, mixed = n;
  for (int k = 0; k < 1000; ++k) {
    wide = Max(wide, h * k) * FloorDiv(wide, h + k);
    deep = FloorDiv(deep * h + k, h + 1);
    mixed = Mod(mixed, Dim(7) + h) + (h + 7) * FloorDiv(mixed + 1, h + 7);
  }
  EXPECT_LT(mixed.ToText().size(), 1000000u);
  for (const Dim& d : {wide, deep})
    EXPECT_EQ(d.Evaluate({{n_, 1}, {h_, 1}}).status().code(), absl::StatusCode::kOutOfRange);
  Dim sum = 0;
  for (int k = 0; k < 300; ++k) sum = sum + FloorDiv(n, k + 2) * h;
  EXPECT_LT((sum * sum).ToText().size(), 100000u);
}

// Random expressions against plain arithmetic in 64 bits.
class RandomDims {
 public:
  explicit RandomDims(uint32_t seed) : random_(seed) {
    for (auto [min, max, divisor] : {std::tuple{0, 30, 1}, {1, 9, 1}, {0, 64, 8}, {-5, 5, 1}})
      symbols_.push_back(
          MakeSymbol(std::string(1, static_cast<char>('a' + symbols_.size())), min, max, divisor));
  }

  struct Expression {
    Dim dim;
    std::vector<std::optional<int64_t>> values;  // one for each binding; absent: an error
  };

  void Bind(int count) {
    for (int k = 0; k < count; ++k) {
      Bindings b;
      for (const SymbolRef& s : symbols_) {
        const int64_t steps = FloorDivide(s->max, s->divisor) - FloorDivide(s->min, s->divisor);
        b[s] = (FloorDivide(s->min, s->divisor) + Below(steps + 1)) * s->divisor;
      }
      bindings_.push_back(b);
    }
  }

  Expression Make(int depth) {
    if (depth == 0 || Below(6) == 0) return Leaf();
    const Expression a = Make(depth - 1), b = Make(depth - 1);
    const int op = static_cast<int>(Below(8));
    const Expression c = Below(2) == 0 ? Constant(1 + Below(12)) : b;
    switch (op) {
      case 0:
        return Combine(a.dim + b.dim, a, b, [](int64_t x, int64_t y, int64_t& r) {
          return !__builtin_add_overflow(x, y, &r);
        });
      case 1:
        return Combine(a.dim - b.dim, a, b, [](int64_t x, int64_t y, int64_t& r) {
          return !__builtin_sub_overflow(x, y, &r);
        });
      case 2:
        return Combine(a.dim * c.dim, a, c, [](int64_t x, int64_t y, int64_t& r) {
          return !__builtin_mul_overflow(x, y, &r);
        });
      case 3:
        return Combine(FloorDiv(a.dim, c.dim), a, c, [](int64_t x, int64_t y, int64_t& r) {
          r = y > 0 ? FloorDivide(x, y) : 0;
          return y > 0;
        });
      case 4:
        return Combine(Mod(a.dim, c.dim), a, c, [](int64_t x, int64_t y, int64_t& r) {
          r = y > 0 ? FloorModulo(x, y) : 0;
          return y > 0;
        });
      case 5: {  // a place in rows, and put together again
        const int64_t rows = 1 + Below(12), columns = 1 + Below(12);
        const Dim row = Mod(FloorDiv(a.dim, columns), rows), column = Mod(a.dim, columns);
        return Combine(row * columns + column + b.dim, a, b, [&](int64_t x, int64_t y, int64_t& r) {
          return !__builtin_add_overflow(FloorModulo(x, rows * columns), y, &r);
        });
      }
      case 6:
        return Combine(Min(a.dim, b.dim), a, b, [](int64_t x, int64_t y, int64_t& r) {
          r = std::min(x, y);
          return true;
        });
      default:
        return Combine(Max(a.dim, b.dim), a, b, [](int64_t x, int64_t y, int64_t& r) {
          r = std::max(x, y);
          return true;
        });
    }
  }

  std::span<const Bindings> bindings() const { return bindings_; }

 private:
  int64_t Below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }

  Expression Constant(int64_t c) {
    return {Dim(c), std::vector<std::optional<int64_t>>(bindings_.size(), c)};
  }

  Expression Leaf() {
    if (Below(3) == 0) return Constant(Below(20) - 4);
    const SymbolRef& s = symbols_[static_cast<size_t>(Below(4))];
    Expression e{Dim(s), {}};
    for (const Bindings& b : bindings_) e.values.push_back(b.at(s));
    return e;
  }

  template <class F>
  static Expression Combine(Dim d, const Expression& a, const Expression& b, F f) {
    Expression e{std::move(d), {}};
    for (size_t k = 0; k < a.values.size(); ++k) {
      int64_t r = 0;
      const bool ok = a.values[k] && b.values[k] && f(*a.values[k], *b.values[k], r);
      e.values.push_back(ok ? std::optional(r) : std::nullopt);
    }
    return e;
  }

  std::mt19937 random_;
  std::vector<SymbolRef> symbols_;
  std::vector<Bindings> bindings_;
};

TEST(DimPropertyTest, AgreesWithPlainArithmetic) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomDims random(seed);
    random.Bind(6);
    const auto e = random.Make(1 + static_cast<int>(seed % 5));
    for (size_t k = 0; k < e.values.size(); ++k) {
      if (!e.values[k]) continue;
      const auto got = e.dim.Evaluate(random.bindings()[k]);
      ASSERT_TRUE(got.ok()) << seed << ": " << e.dim.ToText() << ": " << got.status();
      ASSERT_EQ(*got, *e.values[k]) << seed << ": " << e.dim.ToText();
      ASSERT_GE(*got, e.dim.min()) << seed << ": " << e.dim.ToText();
      ASSERT_LE(*got, e.dim.max()) << seed << ": " << e.dim.ToText();
      ASSERT_EQ(*got % e.dim.divisor(), 0) << seed << ": " << e.dim.ToText();
      ASSERT_EQ(e.dim.Bind(random.bindings()[k]), Dim(*got)) << seed << ": " << e.dim.ToText();
    }
  }
}

TEST(DimPropertyTest, RebuildingGivesTheSame) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomDims random(seed);
    random.Bind(1);
    const Dim d = random.Make(4).dim;
    std::vector<SymbolRef> symbols;
    d.CollectSymbols(symbols);
    std::map<SymbolRef, Dim> same;
    for (const SymbolRef& s : symbols) same[s] = Dim(s);
    ASSERT_EQ(d.Substitute(same), d) << seed << ": " << d.ToText();
  }
}

TEST_F(DimTest, UnifyTakesUnlikeSymbolsAsEqual) {
  EXPECT_EQ(*Unify(n, n), n);
  EXPECT_EQ(*Unify(n, 4), 4);
  EXPECT_EQ(*Unify(4, n), 4);
  EXPECT_EQ(*Unify(n, h), n);
  EXPECT_FALSE(Unify(3, 4).ok());
  EXPECT_FALSE(Unify(n, n + 1).ok());
  EXPECT_FALSE(Unify(i, 4).ok()) << "beyond the bounds";
  EXPECT_FALSE(Unify(q, 12).ok()) << "not a multiple";
}

TEST_F(DimTest, BroadcastFollowsNumPy) {
  EXPECT_EQ(*Broadcast(n, 1), n);
  EXPECT_EQ(*Broadcast(1, n), n);
  EXPECT_EQ(*Broadcast(n, 4), 4);
  EXPECT_EQ(*Broadcast(n, h * 2 + 2), h * 2 + 2) << "which cannot be 1";
  EXPECT_EQ(*Broadcast(n, n + 1), n * n + n) << "one of which is 1";
  EXPECT_EQ(*Broadcast(0, 1), 0);
  EXPECT_FALSE(Broadcast(3, 4).ok());
  const Dims a{n, 1, 5}, b{4, 5};
  const Dims* shapes[] = {&a, &b};
  EXPECT_EQ(*BroadcastShapes(shapes), (Dims{n, 4, 5}));
  const Dims c{3, 5};
  const Dims* bad[] = {&b, &c};
  EXPECT_NE(Message(BroadcastShapes(bad).status()).find("axis 0"), std::string_view::npos);
}

// Every binding that broadcasts, in every order of the operands and with some of them twice.
TEST_F(DimTest, BroadcastOfUnlikeSymbolsIsExact) {
  for (const auto& operands : std::vector<Dims>{{n, h},
                                                {h, n},
                                                {h, w},
                                                {n, h, w},
                                                {w, n, h, n},
                                                {q, n},
                                                {q * 2, n, q * 2},
                                                {n + 1, h, w}}) {
    Dim out = 1;
    for (const Dim& d : operands) out = *Broadcast(out, d);
    for (int64_t extent : {0, 1, 8, 16})
      for (unsigned ones = 0; ones < 8; ++ones) {
        const auto of = [&](unsigned bit) { return (ones >> bit & 1) != 0 ? 1 : extent; };
        const Bindings values = {
            {n_, of(0)}, {h_, of(1)}, {w_, of(2)}, {q_, extent == 1 ? 0 : extent}};
        int64_t want = 1;
        bool broadcasts = true;
        for (const auto& [symbol, value] : values)
          broadcasts &= value >= symbol->min && value % symbol->divisor == 0;
        for (const Dim& d : operands) {
          const int64_t v = *d.Evaluate(values);
          broadcasts &= v == 1 || want == 1 || v == want;
          want = want == 1 ? v : want;
        }
        if (!broadcasts) continue;
        EXPECT_EQ(*out.Evaluate(values), want) << out.ToText() << " " << extent << " " << ones;
      }
  }
}

TEST_F(DimTest, BroadcastTakesEachExtentOnce) {
  const Dim both = *Broadcast(n, h);
  EXPECT_EQ(both, *Broadcast(h, n));
  EXPECT_EQ(*Broadcast(both, n), both);
  EXPECT_EQ(*Broadcast(both, *Broadcast(w, both)), *Broadcast(w, *Broadcast(n, h)));
  EXPECT_EQ(Broadcast(h, w)->ToText(), "max(h, w)") << "neither is 0";
  EXPECT_TRUE(MayEqualBroadcast(n, both));
  EXPECT_TRUE(MayEqualBroadcast(both, *Broadcast(both, w)));
  EXPECT_FALSE(MayEqualBroadcast(w, both));
  EXPECT_FALSE(MayEqualBroadcast(both, n));
}

}  // namespace
}  // namespace forge::ir
