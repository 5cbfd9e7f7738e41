#include <iostream>

#include "cli/cli.h"

int main(int argc, char** argv) {
  return muster::cli::RunCli(argc, argv, std::cout, std::cerr, muster::RealEnv());
}
