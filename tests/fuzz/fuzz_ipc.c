/* SPDX-License-Identifier: MIT */

/* Answers of a diagnostic port: every decoder of ipc_wire.c on arbitrary bytes. */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "src/ipc/ipc_wire.h"

static void read_text(const struct ipc_text *t)
{
	char buf[48];
	size_t n = ipc_text_utf8(t, buf, sizeof(buf));

	if (n >= sizeof(buf) || buf[n] != '\0' || strlen(buf) > n)
		abort();
}

static void read_info(const struct ipc_reply *reply)
{
	for (unsigned version = 1; version <= 3; version++) {
		struct ipc_process_info info;

		if (ipc_process_info_read(reply, version, &info) != IPC_OK)
			continue;
		read_text(&info.command_line);
		read_text(&info.os);
		read_text(&info.arch);
		if (version >= 2) {
			read_text(&info.entry_assembly);
			read_text(&info.runtime_version);
		}
		if (version >= 3)
			read_text(&info.rid);
	}
}

static void read_environment(const uint8_t *data, size_t size)
{
	struct ipc_environment e;
	struct ipc_text text;

	if (ipc_environment_begin(&e, data, size) != IPC_OK)
		return;
	while (ipc_environment_next(&e, &text) == IPC_OK)
		read_text(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* of exactly that size, for a sanitizer */
	struct ipc_header header;
	struct ipc_reply reply;
	struct ipc_text text;
	uint64_t session;
	uint32_t bytes;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (ipc_header_read(copy, size, &header) == IPC_OK && header.size < IPC_HEADER_BYTES)
		abort();
	if (ipc_reply_read(copy, size, &reply) == IPC_OK) {
		if (reply.size > size || reply.payload_bytes > size)
			abort();
		ipc_session_id_read(&reply, &session);
		ipc_environment_read(&reply, &bytes);
		ipc_error_text(&reply, &text);
		read_text(&text);
		if (!ipc_hresult_text(reply.hresult))
			abort();
		read_info(&reply);
	}
	read_environment(copy, size);
	free(copy);
	return 0;
}
