// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of rows that fit shared memory twice: stages of small radices, each from one
// copy to the other. A workgroup has one row, or several short ones.
#include <numbers>

#include "codegen/schedules/rows/rows.h"
#include "codegen/schedules/split.h"
#include "ir/ops/fft/dft.h"

namespace forge::codegen {
namespace {

using ir::Dim;

constexpr int64_t kLargestFourierRadix = 5;

struct FourierForm {
  RowSpace space;
  bool inverse, complex;  // complex: with an imaginary part
  DType dtype;
  int64_t length() const { return space.length().constant(); }
};

std::optional<FourierForm> FourierFormOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::Dft>();
  if (op == nullptr) return std::nullopt;
  return FourierForm{RowSpace(r, std::array{op->axis}), op->inverse,
                     r.anchor()->in[1] != ir::kAbsent, r.anchor_inputs()[0].dtype()};
}

// y[q + step (radix p + k)] = turn(p, k) sum over j of x[q + step (p + count j)]
// exp(-2 pi i j k / radix) for q < step, p < count.  source: Stockham, 1966
struct FourierStep {
  int64_t radix, count, step;
};

// Empty where a prime factor is too large.
std::vector<FourierStep> StepsOf(int64_t n) {
  std::vector<FourierStep> steps;
  for (int64_t left = n, step = 1; left > 1;) {
    int64_t radix = left % 4 == 0 ? 4 : 2;
    while (left % radix != 0 && radix <= kLargestFourierRadix) ++radix;
    if (radix > kLargestFourierRadix) return {};
    left /= radix;
    steps.push_back({radix, left, step});
    step *= radix;
  }
  return steps;
}

struct FourierTile {
  int64_t workgroup = 128;
  int64_t rows = 1;  // of a workgroup
  static constexpr Field kFields[] = {
      FieldOf<&FourierTile::workgroup>("workgroup", "Invocations in a workgroup.",
                                       "8|32|64|128|256"),
      FieldOf<&FourierTile::rows>("rows", "Rows to a workgroup.", "1|2|4|8|16")};
};

FourierTile FourierDefaults(const Region& r, const FourierForm& f) {
  const Caps& caps = r.caps();
  FourierTile t;
  // A barrier costs a processor as much as the invocations that it holds.
  t.workgroup = caps.runs_on_cpu ? 8 : std::min(int64_t{128}, caps.max_workgroup_invocations);
  const int64_t units = std::max<int64_t>(f.space.length().max() / 4, 1);
  while (t.rows < 16 && units * t.rows * 2 <= t.workgroup) t.rows *= 2;
  return t;
}

// Of all rows of a workgroup, with an element more after each 32, so that powers of two apart are
// in different banks.
int64_t SharedElements(const FourierForm& f, const FourierTile& t) {
  const int64_t elements = f.length() * t.rows;
  return elements + elements / 32;
}

Verdict FourierFits(const Region& r, const FourierForm& f, const FourierTile& t) {
  if (!f.space.length().is_constant()) return Verdict::No("the length of rows is open");
  if (f.length() > r.caps().max_shared_bytes) return Verdict::No("rows are long");
  if (StepsOf(f.length()).empty()) return Verdict::No("the length has no small factors");
  const std::vector<SharedArray> copies(4, {AccumulatorOf(f.dtype), SharedElements(f, t)});
  return WorkgroupFits(t.workgroup, r.caps(), copies);
}

struct Parts {
  Val re, im;
};
Parts operator+(const Parts& a, const Parts& b) { return {a.re + b.re, a.im + b.im}; }
Parts operator-(const Parts& a, const Parts& b) { return {a.re - b.re, a.im - b.im}; }
Parts operator*(const Parts& a, const Parts& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Parts operator*(const Parts& a, double b) { return {a.re * b, a.im * b}; }
Parts TimesMinusI(const Parts& a) { return {a.im, -a.re}; }

// Taylor's series of sine and cosine: for |x| <= pi / 2 what follows is below the last place.
Val Series(Val x, bool sine) {
  const Val squared = x * x;
  const int last = x.type().elem == DType::kF64 ? 22 : 14;
  double factor = 1;
  std::vector<double> factors{1};
  for (int n = sine ? 2 : 1; n < last; n += 2) {
    factor /= -static_cast<double>(n * (n + 1));
    factors.push_back(factor);
  }
  Val sum = squared * factors.back();
  for (size_t i = factors.size() - 2; i > 0; --i) sum = (sum + factors[i]) * squared;
  sum = sum + 1.0;
  return sine ? sum * x : sum;
}

// exp(-2 pi i p / n) for p < n / 2: around a quarter turn, where the angle is exact.
Parts TurnOf(Val p, int64_t n, DType t) {
  const Val quarters = convert(p * 4.0 - static_cast<double>(n), t);
  const Val x = quarters * (std::numbers::pi / 2 / static_cast<double>(n));
  return {-Series(x, true), -Series(x, false)};
}

void TransformOdd(std::vector<Parts>& a) {
  const size_t n = a.size();
  const std::vector<Parts> x = a;
  for (size_t j = 1; j < n; ++j) a[0] = a[0] + x[j];
  for (size_t k = 1; k <= n / 2; ++k) {
    Parts even = x[0], odd{};
    for (size_t j = 1; j <= n / 2; ++j) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      const Parts sine = (x[j] - x[n - j]) * std::sin(angle);
      even = even + (x[j] + x[n - j]) * std::cos(angle);
      odd = j == 1 ? sine : odd + sine;
    }
    a[k] = even + TimesMinusI(odd);
    a[n - k] = even - TimesMinusI(odd);
  }
}

void TransformFew(std::vector<Parts>& a) {
  if (a.size() == 2) {
    a = {a[0] + a[1], a[0] - a[1]};
  } else if (a.size() == 4) {
    const Parts even = a[0] + a[2], odd = a[1] + a[3];
    const Parts low = a[0] - a[2], high = TimesMinusI(a[1] - a[3]);
    a = {even + odd, low + high, even - odd, low - high};
  } else {
    TransformOdd(a);
  }
}

// The rows of one workgroup.
class FourierGroup {
 public:
  FourierGroup(Emission& m, const FourierForm& f, const FourierTile& t)
      : m_(m), b_(m.b), f_(f), t_(t), steps_(StepsOf(f.length())) {
    for (uint16_t& view : views_)
      view = m.AddShared("parts", {AccumulatorOf(f.dtype), SharedElements(f, t)});
  }
  void Emit(const Dim& group) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i > 0) b_.Barrier();
      const int64_t units = f_.length() / steps_[i].radix, all = units * t_.rows;
      const Builder::Range range{b_.Builtin(BuiltinKind::kLocalX), b_.Int(all),
                                 b_.Int(t_.workgroup), Builder::Range::kNot};
      b_.For(range, {}, [&](Val n, const Vals&) {
        const Dim unit = m_.e.Coordinate(n, all - 1);
        const Position row = Guard(m_, group * t_.rows + FloorDiv(unit, units), f_.space.rows());
        Unit({i, row, FloorDiv(unit, units) * f_.length(), Mod(unit, units)});
        return Vals{};
      });
    }
  }

 private:
  // The transform of a few numbers: the `at`-th of a row that begins at `first` in shared memory.
  struct Site {
    size_t index = 0;  // of the step
    Position row;
    Dim first, at;
  };
  void Unit(const Site& site) {
    const FourierStep& s = steps_[site.index];
    std::vector<Parts> a;
    for (int64_t j = 0; j < s.radix; ++j) a.push_back(Load(site, site.at + j * (s.count * s.step)));
    TransformFew(a);
    if (s.count > 1) Turn(s, m_.e.Value(FloorDiv(site.at, s.step)), a);
    const Dim q = Mod(site.at, s.step), to = (site.at - q) * s.radix + q;
    const auto store = [&] {
      for (int64_t k = 0; k < s.radix; ++k) Store(site, to + k * s.step, a[static_cast<size_t>(k)]);
    };
    if (IsLast(site))
      IfInside(b_, site.row.inside, store);
    else
      store();
  }
  void Turn(const FourierStep& s, Val p, std::vector<Parts>& a) {
    const Parts once = TurnOf(p, s.count * s.radix, f_.dtype);
    Parts turn = once;
    for (size_t k = 1; k < a.size(); ++k) {
      a[k] = a[k] * turn;
      if (k + 1 < a.size()) turn = turn * once;
    }
  }
  bool IsLast(const Site& site) const { return site.index + 1 == steps_.size(); }
  // An inverse transform is one with the parts exchanged.
  Val Operand(int part, const Site& site, const Dim& element) {
    const int operand = f_.inverse ? 1 - part : part;
    if (operand == 1 && !f_.complex) return b_.Literal(AccumulatorOf(f_.dtype), 0);
    return m_.e.At(operand, f_.space.Index(site.row.at, element));
  }
  Parts Load(const Site& site, const Dim& element) {
    if (site.index == 0) return {Operand(0, site, element), Operand(1, site, element)};
    const Val at = Place(site, element);
    const size_t copy = 2 * ((site.index - 1) % 2);
    return {b_.Load(views_[copy], at), b_.Load(views_[copy + 1], at)};
  }
  void Store(const Site& site, const Dim& element, const Parts& v) {
    if (!IsLast(site)) {
      const Val at = Place(site, element);
      const size_t copy = 2 * (site.index % 2);
      b_.Store(views_[copy], at, v.re);
      b_.Store(views_[copy + 1], at, v.im);
      return;
    }
    const ir::Dims index = f_.space.Index(site.row.at, element);
    m_.e.Finish(index, f_.inverse ? v.im : v.re, 1, 0);
    m_.e.Finish(index, f_.inverse ? v.re : v.im, 1, 1);
  }
  Val Place(const Site& site, const Dim& element) {
    const Dim at = site.first + element;
    return m_.e.Value(at + FloorDiv(at, 32));
  }

  Emission& m_;
  Builder& b_;
  const FourierForm& f_;
  const FourierTile& t_;
  std::vector<FourierStep> steps_;
  std::array<uint16_t, 4> views_ = {};  // re and im of both copies
};

Program FourierEmit(const Region& r, const FourierForm& f, const FourierTile& t) {
  Emission m(r, fmt::format("fourier_{}x{}", t.workgroup, t.rows),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  FourierGroup rows(m, f, t);
  m.Guarded(m.Workgroups(CeilDiv(f.space.rows(), t.rows)),
            [&](const Dim& group) { rows.Emit(group); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kFourier =
    ScheduleOn<FourierTile, FourierFormOf, FourierDefaults, FourierFits, FourierEmit>("fourier");

}  // namespace forge::codegen
