#include "race/report.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sparsesel {
namespace {

Report MakeReport() {
  Report report;
  report.rank = 1;
  report.world = 4;
  report.transport = "threads";
  report.seed = 18446744073709551615u;
  report.digest = 0x0123456789abcdefu;
  report.raced = true;
  report.control_calls = 6;
  report.holdouts = {"random", "nans"};
  CapacityReport capacity;
  capacity.outcome.capacity = 8;
  capacity.outcome.winner = SPARSESEL_COMPOSITION_OWNER;
  capacity.outcome.rule = SPARSESEL_RULE_FASTER;
  capacity.outcome.pairs = 16;
  capacity.outcome.owner_median = 1234.5;
  capacity.outcome.ratio = 1.25;
  capacity.owner.child_plans = {"pack.sorted", "exchange.prefix:256"};
  capacity.owner.measured = true;
  capacity.owner.samples = {1.5, 2.5};
  capacity.owner.train_lengths = {10, 11};
  capacity.owner.spans = {{"pack", 100.0}, {"exchange", 200.0}};
  capacity.replicated.exact = false;
  capacity.replicated.disqualified = "wrong";
  report.capacities = {capacity};
  return report;
}

nlohmann::json Parse(const Report& report) {
  std::string text;
  const Status status = ReportToJson(report, &text);
  REQUIRE(status.ok());
  return nlohmann::json::parse(text);
}

TEST_CASE("report: everything is in the text") {
  const nlohmann::json json = Parse(MakeReport());
  CHECK(json["rank"] == 1);
  CHECK(json["world_size"] == 4);
  CHECK(json["transport"] == "threads");
  CHECK(json["seed"].get<uint64_t>() == 18446744073709551615u);
  CHECK(json["digest"] == "0123456789abcdef");
  CHECK(json["margin"] == 0.02);
  CHECK(json["control_calls"] == 6);
  CHECK(json["holdouts"] == nlohmann::json{"random", "nans"});
  CHECK(json["problem"]["k"] == 2048);
  const nlohmann::json& capacity = json["capacities"][0];
  CHECK(capacity["capacity"] == 8);
  CHECK(capacity["winner"] == "owner");
  CHECK(capacity["rule"] == "faster");
  CHECK(capacity["owner"]["median"] == 1234.5);
  CHECK(capacity["owner"]["child_plans"][1] == "exchange.prefix:256");
  CHECK(capacity["owner"]["samples"] == nlohmann::json{1.5, 2.5});
  CHECK(capacity["owner"]["train_lengths"] == nlohmann::json{10, 11});
  CHECK(capacity["owner"]["spans"][1]["stage"] == "exchange");
  CHECK(capacity["owner"]["spans"][1]["median"] == 200.0);
  CHECK(capacity["replicated"]["exact"] == false);
  CHECK(capacity["replicated"]["disqualified"] == "wrong");
}

TEST_CASE("report: every rule has a name") {
  for (int32_t rule = SPARSESEL_RULE_POLICY; rule <= SPARSESEL_RULE_NEIGHBOUR; ++rule) {
    Report report = MakeReport();
    report.capacities[0].outcome.rule = rule;
    CHECK(Parse(report)["capacities"][0]["rule"] != "none");
  }
}

TEST_CASE("report: numbers that JSON does not have are null") {
  Report report = MakeReport();
  report.capacities[0].outcome.ratio = std::nan("");
  report.capacities[0].outcome.ratio_high = std::numeric_limits<double>::infinity();
  report.capacities[0].owner.samples = {-std::numeric_limits<double>::infinity()};
  const nlohmann::json capacity = Parse(report)["capacities"][0];
  CHECK(capacity["ratio"].is_null());
  CHECK(capacity["ratio_high"].is_null());
  CHECK(capacity["owner"]["samples"][0].is_null());
}

TEST_CASE("report: text that is not UTF-8, or hostile, stays text") {
  Report report = MakeReport();
  report.note = "\xff\xfe broken \xc3";
  report.transport = "quote \" backslash \\ newline \n bell \a";
  const nlohmann::json json = Parse(report);
  CHECK(json["note"].get<std::string>().find(" broken ") != std::string::npos);
  CHECK(json["transport"] == report.transport);
}

TEST_CASE("report: an empty one is complete") { CHECK(Parse({})["capacities"].empty()); }

}  // namespace
}  // namespace sparsesel
