/* SPDX-License-Identifier: MIT */
#include "tests/support/heap_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TYPE_IDS = 0x70000000, TOLD_AT_ONCE = 100, MOVES = 22 };

void heap_begin(struct heap_scene *h, struct play *p)
{
	*h = (struct heap_scene){
		.play = p,
		.next_address = 0x7f0000001000,
		.thread = 77,
		.lose_node_event = -1,
		.lose_edge_event = -1,
		.generation = 2,
		.rows_an_event = 1000,
	};
}

void heap_end(struct heap_scene *h)
{
	free(h->types);
	free(h->objects);
	free(h->edges);
	build_done(&h->roots);
	build_done(&h->statics);
}

static void *more(void *list, size_t count, size_t size)
{
	/* A power of two each time: cheap enough for a million. */
	if (count == 0 || (count & (count - 1)) == 0)
		list = realloc(list, (count ? 2 * count : 1) * size);
	assert_non_null(list);
	return list;
}

static uint32_t type_of(struct heap_scene *h, const char *name)
{
	for (size_t i = 0; i < h->type_count; i++)
		if (strcmp(h->types[i], name) == 0)
			return (uint32_t)i;
	h->types = more(h->types, h->type_count, sizeof(*h->types));
	h->types[h->type_count] = name;
	return (uint32_t)h->type_count++;
}

uint64_t heap_object(struct heap_scene *h, const char *type)
{
	uint32_t t = type_of(h, type);

	h->objects = more(h->objects, h->object_count, sizeof(*h->objects));
	h->objects[h->object_count++] =
		(struct heap_scene_object){ .type = t, .address = h->next_address, .bytes = 48 };
	h->next_address += 48;
	return h->next_address - 48;
}

void heap_edge_list(struct heap_scene *h, uint64_t object, size_t count, const uint64_t *list)
{
	for (size_t i = h->object_count; i-- > 0;) {
		struct heap_scene_object *o = &h->objects[i];

		if (o->address != object)
			continue;
		o->first_edge = h->edge_count;
		o->edge_count = count;
		for (size_t k = 0; k < count; k++) {
			h->edges = more(h->edges, h->edge_count, sizeof(*h->edges));
			h->edges[h->edge_count++] = list[k];
		}
		return;
	}
	fail_msg("no such object");
}

void heap_edges(struct heap_scene *h, uint64_t object, size_t count, ...)
{
	uint64_t list[16];
	va_list ap;

	assert_true(count <= 16);
	va_start(ap, count);
	for (size_t i = 0; i < count; i++)
		list[i] = va_arg(ap, uint64_t);
	va_end(ap);
	heap_edge_list(h, object, count, list);
}

void heap_root(struct heap_scene *h, uint64_t object, unsigned kind, unsigned flags)
{
	build_u64(&h->roots, object);
	build_u8(&h->roots, kind);
	build_u32(&h->roots, flags);
	build_u64(&h->roots, 0x1234);
	h->root_count++;
}

void heap_static(struct heap_scene *h, uint64_t object, const char *field)
{
	build_u64(&h->statics, 0x9000 + 8 * h->static_count);
	build_u64(&h->statics, object);
	build_u64(&h->statics, 0);
	build_u32(&h->statics, 0);
	build_utf16(&h->statics, field);
	h->static_count++;
}

static void send(struct heap_scene *h, uint32_t id, uint32_t version, double ms, struct build *b)
{
	play_event(h->play, NT_PROV_RUNTIME, id, version, h->thread, ms, b);
}

static void send_gc(struct heap_scene *h, uint32_t gc, bool start, double ms)
{
	struct build b = { 0 };

	build_u32(&b, gc);
	build_u32(&b, h->generation);
	if (start) {
		build_u32(&b, 1);
		build_u32(&b, 0);
	}
	build_u16(&b, 0);
	if (start)
		build_u64(&b, 0);
	send(h, start ? 1 : 2, start ? 2 : 1, ms, &b);
}

/* A runtime tells of a type once. */
static void send_types(struct heap_scene *h, double ms)
{
	while (h->types_told < h->type_count) {
		size_t n = h->type_count - h->types_told;
		struct build b = { 0 };

		n = n < TOLD_AT_ONCE ? n : TOLD_AT_ONCE;
		build_u32(&b, (uint32_t)n);
		build_u16(&b, 0);
		for (size_t i = h->types_told; i < h->types_told + n; i++) {
			build_u64(&b, TYPE_IDS + 8 * i);
			build_u64(&b, 0x5000);
			build_u32(&b, 0x02000001);
			build_u32(&b, 0);
			build_u8(&b, 0x12);
			build_utf16(&b, h->types[i]);
			build_u32(&b, 0);
		}
		h->types_told += n;
		send(h, 15, 0, ms, &b);
	}
}

static void begin_bulk(struct build *b, uint32_t index, size_t count)
{
	build_u32(b, index);
	build_u32(b, (uint32_t)count);
	build_u16(b, 0);
}

static void send_nodes(struct heap_scene *h, double ms)
{
	uint32_t index = 0;

	for (size_t i = 0; i < h->object_count; i += h->rows_an_event, index++) {
		size_t n = h->object_count - i < h->rows_an_event ? h->object_count - i
								  : h->rows_an_event;
		struct build b = { 0 };

		begin_bulk(&b, index, n);
		for (size_t k = i; k < i + n; k++) {
			build_u64(&b, h->objects[k].address);
			build_u64(&b, h->objects[k].bytes);
			build_u64(&b, TYPE_IDS + 8 * (uint64_t)h->objects[k].type);
			build_u64(&b, h->objects[k].edge_count);
		}
		if ((int)index == h->lose_node_event)
			build_done(&b);
		else
			send(h, 18, 0, ms, &b);
	}
}

static void send_edges(struct heap_scene *h, double ms)
{
	struct build rows = { 0 };
	uint32_t index = 0;
	size_t n = 0;

	for (size_t i = 0; i <= h->object_count; i++) {
		const struct heap_scene_object *o = i < h->object_count ? &h->objects[i] : NULL;
		struct build b = { 0 };

		for (size_t k = 0; o && k < o->edge_count; k++, n++) {
			build_u64(&rows, h->edges[o->first_edge + k]);
			build_u32(&rows, 0);
		}
		if (n < h->rows_an_event && (o || n == 0))
			continue;
		begin_bulk(&b, index, n);
		build_append(&b, &rows);
		rows = (struct build){ 0 };
		n = 0;
		if ((int)index == h->lose_edge_event)
			build_done(&b);
		else
			send(h, 19, 0, ms, &b);
		index++;
	}
	build_done(&rows);
}

static void send_roots(struct heap_scene *h, double ms)
{
	struct build b = { 0 };

	if (!h->root_count)
		return;
	begin_bulk(&b, 0, h->root_count);
	build_bytes(&b, h->roots.bytes, h->roots.count);
	send(h, 16, 0, ms, &b);
}

static void send_statics(struct heap_scene *h, double ms)
{
	struct build b = { 0 };

	if (!h->static_count)
		return;
	build_u32(&b, h->static_count);
	build_u64(&b, 0);
	build_u16(&b, 0);
	build_bytes(&b, h->statics.bytes, h->statics.count);
	send(h, 38, 0, ms, &b);
}

void heap_walk(struct heap_scene *h, uint32_t gc, double ms)
{
	struct build b = { 0 };

	build_u32(&b, 1);
	build_u32(&b, gc - 1);
	build_u16(&b, 0);
	send(h, 9, 1, ms, &b);
	if (!h->no_start)
		send_gc(h, gc, true, ms + 0.1);
	send_statics(h, ms + 0.2);
	send_types(h, ms + 0.2);
	send_roots(h, ms + 0.3);
	send_nodes(h, ms + 0.4);
	send_edges(h, ms + 0.5);
	if (!h->no_end) {
		send_gc(h, gc, false, ms + 1);
		b = (struct build){ 0 };
		build_u16(&b, 0);
		send(h, 3, 1, ms + 1.5, &b);
	}
	h->lose_node_event = h->lose_edge_event = -1;
	h->no_start = h->no_end = false;
}

void heap_move(struct heap_scene *h, uint64_t by, bool told, double ms)
{
	struct build b = { 0 };

	begin_bulk(&b, 0, 1);
	build_u64(&b, h->object_count ? h->objects[0].address : 0);
	build_u64(&b, (h->object_count ? h->objects[0].address : 0) + by);
	build_u64(&b, 48 * (uint64_t)h->object_count);
	if (told)
		send(h, MOVES, 0, ms, &b);
	else
		build_done(&b);
	for (size_t i = 0; i < h->object_count; i++)
		h->objects[i].address += by;
	for (size_t i = 0; i < h->edge_count; i++)
		h->edges[i] += h->edges[i] ? by : 0;
	h->next_address += by;
}
