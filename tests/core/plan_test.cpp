// Selection is a pure function, so it is asked about processors that are not here.
#include "core/plan.hpp"

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include "core/call.hpp"
#include "kernels/engines/portable.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;

Problem of_type(DType type) {
  Problem p;
  p.dtype = type;
  return p;
}

Cpu with_targets(std::int64_t targets) {
  Cpu cpu;
  cpu.highway_targets = targets;
  return cpu;
}

#if defined(__x86_64__)

TEST(Plan, TheBestTargetOfTheCpu) {
  const std::int64_t avx2 = HWY_SSE4 | HWY_AVX2;
  for (const auto& [targets, label] :
       {std::pair{std::int64_t{HWY_SSE4}, "sse4"}, {avx2, "avx2"}, {avx2 | HWY_AVX3, "avx3"}}) {
    const Plan plan = make_plan(of_type(DType::f32), Pass::forward, with_targets(targets), "");
    EXPECT_EQ(plan.kernel->name, "portable");
    EXPECT_THAT(plan.reason, HasSubstr(label));
  }
}

TEST(Plan, Bf16ProductsWhereTheyAreFaster) {
  Cpu cpu = with_targets(HWY_SSE4 | HWY_AVX2 | HWY_AVX3);
  const auto chosen = [&](DType type) { return make_plan(of_type(type), Pass::forward, cpu, "").kernel->name; };
  EXPECT_EQ(chosen(DType::bf16), "portable");
  cpu.avx512_bf16 = true;
  EXPECT_EQ(chosen(DType::bf16), "portable");
  EXPECT_EQ(make_plan(of_type(DType::bf16), Pass::forward, cpu, "avx512bf16").kernel->name, "avx512bf16");
  cpu.bf16_full_rate = true;
  EXPECT_EQ(chosen(DType::bf16), "avx512bf16");
  EXPECT_EQ(chosen(DType::f32), "portable");
  EXPECT_EQ(chosen(DType::f16), "portable");
}

TEST(Plan, AmxWhereTheSystemLetsIt) {
  Cpu cpu = with_targets(HWY_SSE4 | HWY_AVX2 | HWY_AVX3);
  const auto chosen = [&](DType type) { return make_plan(of_type(type), Pass::forward, cpu, "").kernel->name; };
  const auto forced = [&] { return sentence([&] { make_plan(of_type(DType::bf16), Pass::forward, cpu, "amx"); }); };
  EXPECT_EQ(forced(), "kernel 'amx' can't run on this CPU: this CPU lacks AMX-TILE and AMX-BF16");
  cpu.amx_bf16 = true;
  EXPECT_EQ(forced(), "kernel 'amx' can't run on this CPU: this CPU lacks AVX512_BF16");
  cpu.avx512_bf16 = true;
  EXPECT_EQ(forced(),
            "kernel 'amx' can't run on this CPU: the operating system does not let this process use AMX's tiles");
  EXPECT_EQ(chosen(DType::bf16), "portable");
  cpu.amx_permitted = true;
  EXPECT_EQ(forced(), "");
  EXPECT_EQ(chosen(DType::bf16), "amx");
  EXPECT_EQ(chosen(DType::f32), "portable");
  EXPECT_EQ(chosen(DType::f16), "portable");
  cpu.bf16_full_rate = true;
  EXPECT_EQ(chosen(DType::bf16), "amx");
  EXPECT_EQ(make_plan(of_type(DType::bf16), Pass::forward, cpu, "avx512bf16").kernel->name, "avx512bf16");
}

TEST(Plan, NoTwinIsChosenUnasked) {
  EXPECT_EQ(make_plan(of_type(DType::bf16), Pass::forward, with_targets(0), "").kernel->name, "reference");
  for (const std::string_view twin : {"avx512bf16-twin", "amx-twin"})
    EXPECT_EQ(make_plan(of_type(DType::bf16), Pass::forward, with_targets(0), twin).kernel->name, twin);
}

TEST(Plan, ForcingWhatTheCpuLacksIsAnErrorAndNeverAFallback) {
  const auto forced = [](std::string_view name) {
    return sentence([&] { make_plan(of_type(DType::f32), Pass::forward, with_targets(HWY_SSE4), name); });
  };
  EXPECT_EQ(forced("portable-sse4"), "");
  EXPECT_EQ(forced("portable-avx2"), "kernel 'portable-avx2' can't run on this CPU: this CPU lacks AVX2, FMA and F16C");
}

// One head group of `group` query heads and n queries.
Problem of_rows(DType type, std::int64_t group, std::int64_t n) {
  Problem p = of_type(type);
  p.B = 1, p.Hq = group, p.Hk = 1, p.Nq = n, p.Nk = 100;
  p.segments = {Segment{0, 0, n, 0, 100, 0}};
  return p;
}

TEST(Plan, FewRowsGoToTheKernelsForThem) {
  Cpu cpu = with_targets(HWY_SSE4 | HWY_AVX2 | HWY_AVX3);
  const auto chosen = [&](const Problem& p) { return make_plan(p, Pass::forward, cpu, "").kernel->name; };
  EXPECT_EQ(chosen(of_rows(DType::f32, 1, 1)), "portable-decode");
  EXPECT_EQ(chosen(of_rows(DType::f32, 4, 4)), "portable-decode");
  EXPECT_EQ(chosen(of_rows(DType::f32, 17, 1)), "portable-split");
  EXPECT_EQ(chosen(of_rows(DType::f16, 4, 16)), "portable-split");
  EXPECT_EQ(chosen(of_rows(DType::f32, 5, 13)), "portable");
  EXPECT_EQ(chosen(of_rows(DType::f32, std::int64_t{1} << 60, 16)), "portable");
  EXPECT_EQ(chosen(of_rows(DType::f64, 1, 1)), "reference");
  cpu.avx512_bf16 = cpu.bf16_full_rate = true;
  EXPECT_EQ(chosen(of_rows(DType::bf16, 1, 16)), "avx512bf16-decode");
  EXPECT_EQ(chosen(of_rows(DType::bf16, 1, 64)), "avx512bf16-split");
  EXPECT_EQ(chosen(of_rows(DType::bf16, 1, 65)), "avx512bf16");
  EXPECT_THAT(make_plan(of_rows(DType::bf16, 1, 1), Pass::forward, cpu, "").reason, HasSubstr("is for few rows"));
  EXPECT_EQ(make_plan(of_rows(DType::f32, 1, 1), Pass::forward, cpu, "portable").kernel->name, "portable");
}

TEST(Plan, FewRowsDoNotFillTheTilesOfAmx) {
  Cpu cpu = with_targets(HWY_SSE4 | HWY_AVX2 | HWY_AVX3);
  cpu.avx512_bf16 = cpu.amx_bf16 = cpu.amx_permitted = true;
  const auto chosen = [&](std::int64_t n) {
    return make_plan(of_rows(DType::bf16, 4, n), Pass::forward, cpu, "").kernel->name;
  };
  EXPECT_EQ(chosen(4), "portable-decode");
  EXPECT_EQ(chosen(5), "amx");
  EXPECT_EQ(chosen(17), "amx");
  Problem split = of_rows(DType::bf16, 4, 17);
  split.splits = 2;
  EXPECT_EQ(make_plan(split, Pass::forward, cpu, "").kernel->name, "portable-split");
}

TEST(Plan, SplitsAskForAKernelThatHasThem) {
  const Cpu cpu = with_targets(HWY_SSE4);
  const auto chosen = [&](Problem p) {
    p.splits = 3;
    return make_plan(p, Pass::forward, cpu, "").kernel->name;
  };
  EXPECT_EQ(chosen(of_rows(DType::f32, 1, 1)), "portable-decode");
  EXPECT_EQ(chosen(of_rows(DType::f32, 1, 5000)), "portable-split");
  EXPECT_EQ(sentence([&] { chosen(of_rows(DType::f64, 1, 1)); }),
            "3 splits are asked for but no kernel here splits the keys of f64 inputs");
  Problem backward = of_rows(DType::f32, 1, 1);
  backward.splits = 3;
  EXPECT_EQ(make_plan(backward, Pass::backward, cpu, "").kernel->name, "reference");
}

#endif

TEST(Plan, WithoutAnyTargetTheReferenceRuns) {
  const Plan plan = make_plan(of_type(DType::f32), Pass::forward, with_targets(0), "");
  EXPECT_EQ(plan.kernel->name, "reference");
  EXPECT_EQ(plan.reason, "only the reference takes f32 inputs");
}

TEST(Plan, F64AndBackwardGoToTheReferenceAndSaySo) {
  const Cpu cpu = detect_cpu();
  const Plan wide = make_plan(of_type(DType::f64), Pass::forward, cpu, "");
  EXPECT_EQ(wide.kernel->name, "reference");
  EXPECT_EQ(wide.reason, "only the reference takes f64 inputs");
  const Plan backward = make_plan(of_type(DType::bf16), Pass::backward, cpu, "");
  EXPECT_EQ(backward.kernel->name, "reference");
  EXPECT_EQ(backward.reason, "only the reference takes backward of bf16 inputs");
}

TEST(Plan, AForcedKernelWithoutBackwardHandsOverAndSaysSo) {
  if (!portable_kernels().front().support(detect_cpu()).available) GTEST_SKIP() << "portable can't run here";
  const Plan plan = make_plan(of_type(DType::f32), Pass::backward, detect_cpu(), "portable");
  EXPECT_EQ(plan.kernel->name, "reference");
  EXPECT_THAT(plan.reason, HasSubstr("has no backward"));
}

TEST(Plan, UnknownNamesAndTypesAreErrors) {
  const auto forced = [](DType type, std::string_view name) {
    return sentence([&] { make_plan(of_type(type), Pass::forward, detect_cpu(), name); });
  };
  const std::string unknown = forced(DType::f32, "fastest");
  EXPECT_THAT(unknown, HasSubstr("there is no kernel 'fastest'; the kernels are: "));
  for (const Kernel& kernel : kernel_table()) EXPECT_THAT(unknown, HasSubstr(std::string(kernel.name)));
  if (!portable_kernels().front().support(detect_cpu()).available) GTEST_SKIP() << "no fast kernel can run here";
  EXPECT_EQ(forced(DType::f64, "portable"),
            "kernel 'portable' does not take f64 inputs; the reference takes every type");
}

TEST(Plan, EveryKernelOfTheTableSaysWhatItNeeds) {
  for (const KernelInfo& kernel : kernels()) {
    EXPECT_FALSE(kernel.why.empty()) << kernel.name;
    EXPECT_FALSE(kernel.types.empty()) << kernel.name;
  }
  EXPECT_EQ(kernels().back().name, "reference");
  EXPECT_TRUE(kernels().back().available);
}

TEST(ContextErrors, ANegativeNumberOfThreads) {
  EXPECT_EQ(sentence([] { Context context(-2); }), "a context can't have -2 threads; 0 means one per core");
}

}  // namespace
}  // namespace levelhead::test
