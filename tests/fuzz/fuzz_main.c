/* SPDX-License-Identifier: MIT */

/* fuzz_NAME FILE-OR-FOLDER...: runs the target once on each file, without any fuzzing engine. */

#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static size_t files;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;
	int result = -1;

	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
		rewind(f);
		data = malloc(size ? (size_t)size : 1);
		if (data && fread(data, 1, (size_t)size, f) == (size_t)size) {
			LLVMFuzzerTestOneInput(data, (size_t)size);
			files++;
			result = 0;
		}
	}
	if (result)
		fprintf(stderr, "cannot read '%s'\n", path);
	free(data);
	if (f)
		fclose(f);
	return result;
}

static int replay_folder(const char *path)
{
	struct dirent **names;
	char file[4096];
	int n = scandir(path, &names, NULL, alphasort), result = n < 0 ? -1 : 0;

	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			if (replay_file(file) != 0)
				result = -1;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return result;
}

int main(int argc, char **argv)
{
	int result = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			result |= replay_folder(argv[i]);
		else
			result |= replay_file(argv[i]);
	}
	printf("%zu inputs\n", files);
	return result || files == 0 ? 1 : 0;
}
