// The command line: options to a Job, a Result to an exit status.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tool/commands.h"
#include "tool/reshard.h"

namespace sparsesel_tool {
namespace {

std::vector<std::string> Strings(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

void AddJobOptions(CLI::App* command, Job* job) {
  CLI::Option* input =
      command->add_option("--input", job->input,
                          "A safetensors file: F32 scores and I32 ids as [rank, row, candidate], "
                          "optional I32 counts [rank, row] and expected_ids [row, k]");
  command->add_option("--distribution", job->generator.distribution, "Of generated scores")
      ->check(CLI::IsMember(Strings(DistributionNames())))
      ->excludes(input)
      ->capture_default_str();
  command->add_option("--seed", job->generator.seed, "Of generated candidates")
      ->excludes(input)
      ->capture_default_str();
  command
      ->add_option_function<int32_t>(
          "--world",
          [job](const int32_t& world) {
            job->generator.world = world;
            job->world_given = true;
          },
          "Ranks, default 8; of a file only with --reshard")
      ->check(CLI::Range(1, kMaxRanks));
  command->add_option("--rows", job->generator.rows, "Generated rows")
      ->check(CLI::Range(1, kMaxRows))
      ->excludes(input)
      ->capture_default_str();
  command->add_option("--candidates", job->generator.candidates, "Generated per rank and row")
      ->check(CLI::Range(1, kMaxListLength))
      ->excludes(input)
      ->capture_default_str();
  command->add_option("--k", job->k, "Ids wanted per row; default: as the file expects, or 2048")
      ->check(CLI::Range(1, kMaxListLength));
  command->add_option("--reshard", job->reshard, "Deal the candidates to the ranks anew")
      ->check(CLI::IsMember(Strings(ReshardNames())));
  command
      ->add_option("--capacities", job->capacities,
                   "Row counts to prepare for, e.g. 8,4,1; default: all from the rows down to 1, "
                   "by halves if there are more than 16")
      ->delimiter(',')
      ->check(CLI::Range(1, kMaxRows));
  command->add_option("--composition", job->composition, "What is bound")
      ->check(CLI::IsMember({"auto", "replicated", "owner"}))
      ->capture_default_str();
  command->add_option("--child-plans", job->child_plans,
                      "Variants to use instead of choosing, e.g. pack.sorted,exchange.prefix:256");
  command->add_option("--executes", job->executes, "Replays of each capacity")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--device", job->device, "Where candidates lie")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

void AddRaceOptions(CLI::App* command, Job* job) {
  command->add_option("--json", job->json, "Write the whole report to this file");
  command->add_option("--budget", job->budget, "Seconds of measuring; default: 0.75 a capacity")
      ->check(CLI::Range(0.001, 3600.0));
  command->add_option("--race-seed", job->race_seed, "Of the order of trials and the holdouts")
      ->capture_default_str();
}

Result CheckJob(const Job& job) {
  std::vector<int32_t> sorted = job.capacities;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return Failure("--capacities lists a number twice");
  }
  return {};
}

int Exit(const Result& result) {
  if (result.ok()) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "sparsesel: %s\n", result.text.c_str());
  return result.exit;
}

// Everything on one line, whatever the message was made of.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int Main(int argc, char** argv) {
  CLI::App app("Exact, ordered, global top-k over ranks: race both compositions, check, replay.",
               "sparsesel");
  app.set_version_flag("--version", std::string("sparsesel ") + sparsesel_version_string());
  app.require_subcommand(1);
  Job job;
  bool raw = false;
  CLI::App* race = app.add_subcommand("race", "Race both compositions, then bind and replay");
  CLI::App* verify = app.add_subcommand("verify", "Check both under every re-sharding");
  CLI::App* info = app.add_subcommand("info", "Show what the library sees");
  AddJobOptions(race, &job);
  AddRaceOptions(race, &job);
  AddJobOptions(verify, &job);
  info->add_flag("--raw", raw, "As JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help and version
    return Exit(Failure(OneLine(error.what())));
  }
  if (info->parsed()) return Exit(InfoCommand(raw));
  if (Result r = CheckJob(job); !r.ok()) return Exit(r);
  return Exit(verify->parsed() ? VerifyCommand(job) : RaceCommand(job));
}

}  // namespace
}  // namespace sparsesel_tool

int main(int argc, char** argv) {
  try {
    return sparsesel_tool::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sparsesel: there is not enough memory for this job\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sparsesel: %s\n", error.what());
  }
  return sparsesel_tool::kExitError;
}
