/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_live.h"

#include <stdlib.h>

#include "src/collect/providers.h"

struct collect_live {
	struct an_engine *engine;
	struct nt_decoder *decoder;
	bool failed;
};

bool collect_live_is_useful(const struct ipc_collect *session)
{
	const struct ipc_provider *p = ipc_collect_find(session, PROVIDER_RUNTIME);

	return p && p->level >= 4 && (p->keywords & PROVIDER_RUNTIME_CONTENTION);
}

/* Samples would only say where owners were; they are most of the stream. */
static bool is_ignored(void *ctx, const struct nt_event_def *def)
{
	(void)ctx;
	return def->provider_id != NT_PROV_RUNTIME && def->provider_id != NT_PROV_RUNDOWN;
}

struct collect_live *collect_live_new(void)
{
	static const struct an_class *const classes[] = { &an_class_locks, NULL };
	const struct an_options options = { .top = 1 };
	struct collect_live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->engine = an_engine_new(NULL, &options, classes);
	if (l->engine) {
		an_engine_ignore(l->engine, is_ignored, NULL);
		l->decoder = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &an_engine_sink, l->engine);
	}
	return l->decoder ? l : collect_live_free(l);
}

struct collect_live *collect_live_free(struct collect_live *l)
{
	if (!l)
		return NULL;
	nt_decoder_free(l->decoder);
	an_engine_free(l->engine);
	free(l);
	return NULL;
}

void collect_live_push(struct collect_live *l, const uint8_t *bytes, size_t len)
{
	/* A damaged stream is the analysis's to report. */
	if (l && !l->failed && nt_decoder_push(l->decoder, bytes, len) < 0)
		l->failed = true;
}

bool collect_live_look(struct collect_live *l, int64_t now_ns, struct an_live *ret)
{
	return l && !l->failed && an_engine_live(l->engine, now_ns, ret);
}
