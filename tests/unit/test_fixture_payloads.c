/* SPDX-License-Identifier: MIT */
/*
 * Real traces: the payload of every event is used to its last byte by the fields of its
 * definition, and all events of the providers in the built-in table are known to it.
 *
 *	test_fixture_payloads repository	the traces in $DRD_FIXTURES
 *	test_fixture_payloads shared ROOT	those in $DRD_SHARED/fixtures that the repository
 *						does not have (ROOT/../shared where it is not set)
 *
 * The second one exits with 77 when there is no such folder.  Exceptions, all of them faults of the
 * writer that no reader can mend:
 *
 * - Warehouse-Rich/5 "Unicode": a string with a NUL inside is written in full, 12 bytes too many;
 * - events announced without fields though they have some: Warehouse-Rich/7 "Blob" (byte[]),
 *   Warehouse-SelfDescribing/156 "Nested" (array of objects), AsyncProfilerEventSource/1 (byte[]).
 *
 * No exceptions, as these are read right: the two undeclared strings of Universal.System/3
 * "ProcessMapping" (by the table) and the enum of Warehouse-Rich/1 "AllTypes" that has 4 bytes
 * instead of 2 (fit.widened).
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nettrace/nettrace.h"
#include "tests/support/fixture.h"
#include "tests/support/one_event.h"

enum { MAX_VALUES = 32, PATH_ROOM = 4096, SKIPPED = 77 };

struct checked {
	const char *trace;
	uint64_t events, faults;
	uint64_t surplus; /* the exceptions */
	uint64_t raw;
	uint64_t sum; /* of bytes that values point to: they must be readable */
};

static void fault(struct checked *c, const struct nt_event *ev, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fault(struct checked *c, const struct nt_event *ev, const char *format, ...)
{
	va_list args;

	if (c->faults++ >= 10)
		return;
	printf("%s: %s/%u/v%u %s: ", c->trace, ev->def->provider, ev->def->event_id,
	       ev->def->version, ev->def->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static bool is_event(const struct nt_event *ev, const char *provider, uint32_t id)
{
	return ev->def->event_id == id && !strcmp(ev->def->provider, provider);
}

static bool may_be_raw(const struct nt_event *ev)
{
	return is_event(ev, "Warehouse-Rich", 7) || is_event(ev, "Warehouse-SelfDescribing", 156) ||
	       is_event(ev, "System.Runtime.CompilerServices.AsyncProfilerEventSource", 1) ||
	       !ev->payload_bytes;
}

static enum nt_status touch(void *ctx, const struct nt_value *v)
{
	struct checked *c = ctx;

	if (v->data && v->bytes)
		c->sum += v->data[0] + (uint64_t)v->data[v->bytes - 1];
	return v->kind == NT_V_NONE || v->kind == NT_V_BAD ? NT_ESINK : NT_OK;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	static const struct nt_visitor visitor = { touch, touch, touch };
	struct nt_payload_fit fit, visit_fit;
	struct nt_value v[MAX_VALUES];
	struct checked *c = ctx;
	size_t n;

	c->events++;
	if (ev->def->layout == NT_LAYOUT_NONE) {
		c->raw++;
		if (!may_be_raw(ev))
			fault(c, ev, "unknown layout");
		return NT_OK;
	}
	n = nt_payload_read(ev, v, MAX_VALUES, &fit);
	if (n != ev->def->field_count)
		fault(c, ev, "has %zu fields", ev->def->field_count);
	for (size_t i = 0; i < n; i++)
		touch(c, &v[i]);
	if (nt_payload_visit(ev, &visitor, c, &visit_fit) != NT_OK)
		fault(c, ev, "a value is missing or bad");
	if (!same_fit(&fit, &visit_fit))
		fault(c, ev, "read used %zu bytes, visit %zu", fit.used, visit_fit.used);
	if (fit.complete && fit.used == ev->payload_bytes)
		return NT_OK;
	if (is_event(ev, "Warehouse-Rich", 5) && fit.used + 12 == ev->payload_bytes)
		c->surplus++;
	else
		fault(c, ev, "%zu of %zu bytes used%s", fit.used, ev->payload_bytes,
		      fit.complete ? "" : ", incomplete");
	return NT_OK;
}

/* Returns the number of faults. */
static uint64_t check_trace(const char *path)
{
	static const struct nt_sink sink = { .event = on_event };
	struct checked c = { .trace = path };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &sink, &c);
	enum nt_status st = NT_ENOMEM;
	size_t size = 0;
	uint8_t *bytes = fixture_read(path, &size);

	if (d && bytes) {
		st = nt_decoder_push(d, bytes, size);
		if (st == NT_OK)
			st = nt_decoder_finish(d);
	}
	if (st != NT_OK) {
		printf("%s: %s\n", path, bytes ? nt_status_name(st) : "cannot be read");
		c.faults++;
	} else if (!c.events) {
		printf("%s: no events\n", path);
		c.faults++;
	}
	printf("# %s: %llu events, %llu raw, %llu with surplus bytes, %llu faults\n", path,
	       (unsigned long long)c.events, (unsigned long long)c.raw,
	       (unsigned long long)c.surplus, (unsigned long long)c.faults);
	nt_decoder_free(d);
	free(bytes);
	return c.faults;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && !strcmp(name + n - m, end);
}

static bool is_trace(const char *name)
{
	return ends_in(name, ".nettrace") || ends_in(name, ".nettrace.zst") ||
	       ends_in(name, ".netperf.zst");
}

static bool exists(const char *folder, const char *name)
{
	char path[PATH_ROOM];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	if (f)
		fclose(f);
	return f;
}

/* Checks the traces of a folder but not those that the other one has too; -1: no such folder. */
static int check_folder(const char *folder, const char *but_not, uint64_t *faults)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int traces = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		char path[PATH_ROOM];

		if (!is_trace(entry->d_name) || (but_not && exists(but_not, entry->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		*faults += check_trace(path);
		traces++;
	}
	closedir(dir);
	return traces;
}

static int check_shared(const char *root, const char *repository, uint64_t *faults)
{
	const char *set = getenv("DRD_SHARED");
	char folder[PATH_ROOM - 32], fixtures[PATH_ROOM];
	int traces, published;

	if (set)
		snprintf(folder, sizeof(folder), "%s", set);
	else
		snprintf(folder, sizeof(folder), "%s/../shared", root);
	snprintf(fixtures, sizeof(fixtures), "%s/fixtures", folder);
	traces = check_folder(fixtures, repository, faults);
	if (traces < 0) {
		printf("skipped: no folder %s (set DRD_SHARED)\n", fixtures);
		return SKIPPED;
	}
	snprintf(fixtures, sizeof(fixtures), "%s/fixtures/public", folder);
	published = check_folder(fixtures, repository, faults);
	printf("# %d traces\n", traces + (published > 0 ? published : 0));
	return *faults ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *repository = getenv("DRD_FIXTURES");
	uint64_t faults = 0;
	int traces;

	if (argc == 3 && !strcmp(argv[1], "shared"))
		return check_shared(argv[2], repository, &faults);
	if (argc != 2 || strcmp(argv[1], "repository") != 0 || !repository) {
		fprintf(stderr, "usage: DRD_FIXTURES=FOLDER %s repository | shared ROOT\n",
			argv[0]);
		return EXIT_FAILURE;
	}
	traces = check_folder(repository, NULL, &faults);
	if (traces < 10) {
		printf("%d traces in %s\n", traces, repository);
		return EXIT_FAILURE;
	}
	return faults ? EXIT_FAILURE : EXIT_SUCCESS;
}
