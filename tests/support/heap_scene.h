/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_HEAP_SCENE_H
#define TESTS_SUPPORT_HEAP_SCENE_H

/*
 * A made-up heap, and the events by which a runtime would tell of it.
 *
 *	struct heap_scene h;
 *	heap_begin(&h, &p);
 *	box = heap_object(&h, "AsyncStateMachineBox`1[System.Int32,Shop.Api+<Get>d__1]");
 *	heap_edges(&h, box, 2, box, task);
 *	heap_walk(&h, 1, 10.0);
 *	heap_end(&h);
 */

#include "tests/support/play.h"

struct heap_scene_object {
	uint32_t type;
	uint64_t address, bytes;
	size_t first_edge, edge_count; /* in edges */
};

struct heap_scene {
	struct play *play;
	const char **types;
	size_t type_count, types_told;
	struct heap_scene_object *objects;
	size_t object_count;
	uint64_t *edges; /* of all objects, each one's together */
	size_t edge_count;
	struct build roots, statics;
	uint32_t root_count, static_count;
	uint64_t next_address;
	uint64_t thread;
	/* What goes wrong in the next walk. */
	int lose_node_event, lose_edge_event; /* which one, from 0; -1: none */
	bool no_start, no_end;
	unsigned generation; /* of its collection */
	size_t rows_an_event;
};

void heap_begin(struct heap_scene *h, struct play *p);
void heap_end(struct heap_scene *h);
/* Returns its address. */
uint64_t heap_object(struct heap_scene *h, const char *type);
/* Its references, all at once; addresses as uint64_t. */
void heap_edges(struct heap_scene *h, uint64_t object, size_t count, ...);
void heap_edge_list(struct heap_scene *h, uint64_t object, size_t count, const uint64_t *list);
void heap_root(struct heap_scene *h, uint64_t object, unsigned kind, unsigned flags);
void heap_static(struct heap_scene *h, uint64_t object, const char *field);
/* A collection with a walk of all that was added. */
void heap_walk(struct heap_scene *h, uint32_t gc, double ms);
/* All objects move by so many bytes, and the collection that moves them tells so, or not. */
void heap_move(struct heap_scene *h, uint64_t by, bool told, double ms);

#endif
