// The registry, the rows' form, JSON Lines, threads, interruption.
#include "lab/experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/file_error.hpp"
#include "lab/json_lines.hpp"
#include "lab/page.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

using Json = nlohmann::json;

// All that is not timing: a few samples are enough.
Finding few(const Experiment& experiment, int threads, std::uint64_t seed = 1) {
  Context context(threads);
  Settings settings;
  settings.seed = seed;
  settings.share = 0.005;
  return investigate(experiment, context, settings);
}

std::string lines(const Finding& finding, std::uint64_t seed = 1) {
  std::string all;
  for (const Row& row : finding.rows) all += row_line(*finding.experiment, seed, row);
  return all + verdict_line(finding, seed);
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Experiment* experiment : experiments()) {
    EXPECT_TRUE(names.insert(experiment->name).second) << experiment->name;
    EXPECT_EQ(find_experiment(experiment->name), experiment);
    for (const std::string_view words : {experiment->title, experiment->question, experiment->claim})
      EXPECT_FALSE(words.empty()) << experiment->name;
  }
  EXPECT_EQ(find_experiment("a9000"), nullptr);
}

TEST(Experiments, ThreadsChangeNoBit) {
  for (const Experiment* experiment : experiments())
    EXPECT_EQ(lines(few(*experiment, 1)), lines(few(*experiment, 3))) << experiment->name;
}

TEST(Experiments, SeedsChangeWhatIsDrawn) {
  for (const Experiment* experiment : {&a2_variance, &a3_range, &a4_coins, &a7_winner, &table1_gaussian})
    EXPECT_NE(lines(few(*experiment, 2, 1)), lines(few(*experiment, 2, 2), 1)) << experiment->name;
}

TEST(Experiments, LinesParseAndEndInTheVerdict) {
  for (const Experiment* experiment : experiments()) {
    const Finding finding = few(*experiment, 2, 7);
    std::istringstream stream(lines(finding, 7));
    std::string line;
    std::vector<Json> objects;
    while (std::getline(stream, line)) objects.push_back(Json::parse(line));
    ASSERT_EQ(objects.size(), finding.rows.size() + 1);
    for (const Json& object : objects) {
      EXPECT_EQ(object.at("experiment"), experiment->name);
      EXPECT_EQ(object.at("seed"), 7);
      EXPECT_EQ(object.contains("verdict"), &object == &objects.back());
      EXPECT_EQ(object.contains("measured"), &object != &objects.back());
    }
    EXPECT_EQ(objects.back().at("verdict"), name_of(finding.conclusion.outcome));
    EXPECT_EQ(objects.back().at("reason"), finding.conclusion.reason);
    EXPECT_EQ(objects.back().contains("depends_on"), finding.conclusion.outcome == Outcome::depends);
  }
}

TEST(Experiments, ExhibitsAreWellFormed) {
  for (const Experiment* experiment : experiments()) {
    const Exhibit exhibit = experiment->exhibit(few(*experiment, 2).rows);
    EXPECT_FALSE(exhibit.tables.empty()) << experiment->name;
    for (const Table& table : exhibit.tables) {
      EXPECT_FALSE(table.cells.empty()) << experiment->name;
      for (const auto& row : table.cells) EXPECT_EQ(row.size(), table.header.size()) << experiment->name;
    }
    for (const report::Chart& chart : exhibit.charts) {
      EXPECT_TRUE(chart.says.ends_with('.')) << chart.says;
      for (const report::Series& series : chart.series)
        EXPECT_FALSE(series.points.empty()) << experiment->name << ", " << series.name;
    }
    for (const report::Bars& bars : exhibit.bars)
      for (const report::Bars::Series& series : bars.series) EXPECT_EQ(series.values.size(), bars.labels.size());
    EXPECT_NO_THROW(experiment->exhibit({})) << experiment->name;
  }
  for (const Experiment* experiment : {&a2_variance, &a3_range, &a7_winner, &table1_gaussian})
    EXPECT_FALSE(experiment->exhibit(few(*experiment, 2).rows).charts.empty());
}

TEST(Experiments, OnAPage) {
  std::vector<Finding> findings;
  for (const Experiment* experiment : {&a2_variance, &a5_softmax}) findings.push_back(few(*experiment, 2));
  const std::string html = page(findings, 7);
  EXPECT_EQ(html, page(findings, 7));
  for (const Finding& finding : findings) {
    EXPECT_THAT(html, ::testing::HasSubstr(std::string(finding.experiment->title)));
    EXPECT_THAT(html, ::testing::HasSubstr(finding.conclusion.reason));
  }
  EXPECT_THAT(html, ::testing::HasSubstr("Seed 7."));
  EXPECT_THAT(html, ::testing::HasSubstr("holds 1, fails 1"));
}

TEST(Rows, FieldsByName) {
  const Fields fields{{"n", std::int64_t{3}}, {"x", 0.5}, {"name", "text"}};
  EXPECT_EQ(number(fields, "n"), 3);
  EXPECT_EQ(number(fields, "x"), 0.5);
  EXPECT_EQ(text(fields, "name"), "text");
  EXPECT_THROW(number(fields, "y"), std::out_of_range);
  EXPECT_THROW(number(fields, "name"), std::out_of_range);
  EXPECT_THROW(text(fields, "x"), std::out_of_range);
}

TEST(Rows, NumbersOnALine) {
  const Row row{{{"n", std::int64_t{3}}, {"part", "a\n\"b\""}},
                {{"third", 1.0 / 3}, {"none", std::nan("")}, {"end", std::numeric_limits<double>::infinity()}},
                {{"third", 0.33}}};
  const std::string line = row_line(a5_softmax, 9, row);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = Json::parse(line);
  EXPECT_EQ(json.at("parameters").at("n"), 3);
  EXPECT_EQ(json.at("parameters").at("part"), "a\n\"b\"");
  EXPECT_EQ(json.at("measured").at("third"), 1.0 / 3);  // digits that read back
  EXPECT_TRUE(json.at("measured").at("none").is_null());
  EXPECT_TRUE(json.at("measured").at("end").is_null());
  EXPECT_EQ(json.at("told").at("third"), 0.33);
}

TEST(Experiments, StopWhenAsked) {
  Context context(2);
  std::atomic<int> stop{0};
  Settings settings;
  settings.share = 0.005;
  settings.stop = &stop;
  std::int64_t rows = 0;
  settings.on_row = [&](const Row&) {
    if (++rows == 3) stop = 1;
  };
  EXPECT_THROW(investigate(table1_gaussian, context, settings), Interrupted);
  EXPECT_EQ(rows, 3);
  EXPECT_THROW(investigate(a2_variance, context, settings), Interrupted);  // inside the first draw
  EXPECT_EQ(rows, 3);
}

TEST(LineFile, SaysWhatCannotBeWritten) {
  EXPECT_THROW(LineFile("/no/such/folder/x.jsonl"), FileError);
  EXPECT_THROW(LineFile("/dev/full").write("{}\n"), FileError);
}

}  // namespace
}  // namespace levelhead::lab
