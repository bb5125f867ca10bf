#include <stdlib.h>

#include "cli/command.h"

int main(int argc, char **argv) { exit(ats_cli_main(argc, argv)); }
