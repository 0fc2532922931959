/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_TASKS_HEAP_INTERNAL_H
#define ANALYZERS_HEAP_TASKS_HEAP_INTERNAL_H

/*
 * Inside of tasks_heap: kinds of types (tasks_heap_kinds.c), who waits for whom among the objects
 * of one walk (tasks_heap_links.c), equal chains merged (tasks_heap_chains.c), walks compared
 * (tasks_heap.c), and what is said of it (tasks_heap_report.c).
 */

#include "analyzers/heap/suspension.h"
#include "analyzers/heap/tasks_heap.h"

enum th_kind {
	TH_OTHER,
	TH_BOX, /* an async method: AsyncStateMachineBox`1[Result,Ns.Type+<M>d__N] */
	TH_HOLDER, /* <M>d__N: its variables, in a Debug build, or an async iterator */
	TH_TASK,
	TH_WHEN_ALL,
	TH_WHEN_ANY,
	TH_UNWRAP, /* Task.Run(async), Unwrap() */
	TH_CONTINUE_WITH, /* the task of a ContinueWith */
	TH_WAIT_ASYNC, /* Task.WaitAsync(timeout or token) */
	TH_DELAY,
	TH_SEMAPHORE,
	TH_CHANNEL_READ,
	TH_CHANNEL_WRITE,
	TH_IO,
	TH_CONTINUATION, /* leads from an antecedent to the task of a ContinueWith */
	TH_BLOCKED, /* SetOnInvokeMres: a thread waits */
	TH_LIST, /* List`1[Object]: several continuations */
	TH_ARRAY, /* Object[] */
	TH_ACTION, /* Action, Action`1[Object] */
	TH_DELEGATE, /* any other */
	TH_WRAPPER, /* ContinuationWrapper, …AwaitTaskContinuation: around an Action */
	TH_TIMER, /* TimerQueueTimer */
	TH_SOURCE, /* TaskCompletionSource */
	TH_KINDS
};

enum th_kind th_kind_of(const struct an_heap_type *type);
/* Whether it is a Task, whatever else it is. */
bool th_is_task(enum th_kind kind);
/* Waits for several, or for one that does not know of it: found by reverse edges only. */
bool th_is_combined(enum th_kind kind);
/* The method of a box, for people. */
void th_box_method(const char *type_name, char *buf, size_t size);
/* Whether a holder's bare name is that of the box's state machine. */
bool th_is_holder_of(const char *box_name, const char *holder_name);
/* What an object of that kind and type is waited for as. */
void th_describe(enum an_leaf leaf, const char *type_name, char *buf, size_t size);

/* An object that waits, or is waited for. */
struct th_node {
	uint32_t object;
	uint32_t awaits; /* node; AN_HEAP_NONE: none, or see children */
	uint32_t first_child, child_count; /* of those that are combined: in th_nodes.children */
	uint32_t class_; /* once known */
	uint32_t end; /* ditto: the innermost one that it awaits, or itself */
	uint8_t kind, leaf, color;
	bool blocked, awaited, is_leaf;
};

struct th_nodes {
	const struct nt_alloc *alloc;
	const struct an_heapgraph *g;
	const struct an_heap_types *types;
	uint8_t *kinds; /* of types */
	struct th_node *nodes;
	size_t count, cap;
	struct nt_idmap by_object;
	uint32_t *children; /* nodes */
	size_t child_count, child_cap;
	struct th_link *links; /* while reading */
	size_t link_count, link_cap;
	uint64_t suspended, unknown, beyond, unnamed;
};

enum { TH_MAX_NODES = 2 << 20 };

/* Who waits for whom in a finished graph; th_nodes_done() either way. */
NT_MUST_CHECK enum nt_status th_nodes_make(struct th_nodes *n, const struct nt_alloc *alloc,
					   const struct an_heapgraph *g,
					   const struct an_heap_types *types);
void th_nodes_done(struct th_nodes *n);

/* --- tasks_heap_chains.c --- */

/*
 * Addresses of the outermost object of a call and of what is waited for in the end.  A loop is the
 * same object for ever; that it does not get on shows in the other.
 */
struct th_ends {
	uint64_t outer, inner;
};

/* One kind of chain of one walk. */
struct th_row {
	struct an_heap_chain chain;
	struct th_ends *heads; /* of each call, sorted; none where there are too many */
	size_t head_count;
	uint32_t sample; /* object of one of them */
	uint32_t leaf; /* an object that is waited for; AN_HEAP_NONE: none, in a circle */
};

struct th_rows {
	const struct nt_alloc *alloc;
	struct nt_arena arena; /* texts, frames, heads */
	struct th_row *rows;
	size_t count, cap;
	struct nt_idmap by_hash;
	uint64_t chains; /* before merging */
	uint64_t beyond; /* chains that found no room */
	size_t heads; /* kept, of all rows */
};

NT_MUST_CHECK enum nt_status th_rows_make(struct th_rows *r, struct th_nodes *n);
void th_rows_done(struct th_rows *r);

/* --- tasks_heap_moves.c --- */

/* One end of a chain of the walk that others are compared with. */
struct th_track {
	uint64_t address, moved; /* now, and after the collection that goes on */
	uint64_t *slot; /* in its row */
};

struct th_moves {
	struct th_track *items; /* by address */
	size_t count, cap;
	bool pending;
	bool told; /* the trace says where objects move */
};

NT_MUST_CHECK enum nt_status th_moves_start(struct th_moves *m, const struct nt_alloc *alloc,
					    const struct th_rows *rows);
void th_moves_event(struct th_moves *m, const struct nt_event *ev);
/* The collection has ended. */
void th_moves_commit(struct th_moves *m);
int th_compare_ends(const void *a, const void *b);
/* Puts what is known by now into the rows they came from. */
void th_moves_apply(const struct th_moves *m, struct th_rows *rows);

/* --- tasks_heap.c --- */

struct th_walk {
	bool used;
	struct an_heap_walk_facts facts;
	struct th_rows rows;
};

enum { TH_WALKS = 2 };

struct an_heap_tasks {
	const struct nt_alloc *alloc;
	struct an_heap_events *events;
	/* The last two that are best: walks of the whole heap before others. */
	struct th_walk walks[TH_WALKS]; /* the newest first */
	struct th_moves moves; /* since the first of them */
	bool finished, compared;
	struct an_suspension suspension; /* of the runtime, that goes on */
};

#endif
