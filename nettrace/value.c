/* SPDX-License-Identifier: MIT */
/* Values of fields by name, as number and as text. */
#include "nettrace/nettrace.h"

#include <string.h>

const struct nt_value *nt_value_find(const struct nt_value *values, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		const char *own = values[i].field->name;

		if (own == name || (own[0] == name[0] && strcmp(own, name) == 0))
			return values[i].kind == NT_V_NONE ? NULL : &values[i];
	}
	return NULL;
}

uint64_t nt_value_u64(const struct nt_value *values, size_t n, const char *name, uint64_t dflt)
{
	const struct nt_value *v = nt_value_find(values, n, name);

	if (!v)
		return dflt;
	switch (v->kind) {
	case NT_V_BOOL:
	case NT_V_UINT:
		return v->u;
	case NT_V_INT:
		return (uint64_t)v->i;
	case NT_V_DOUBLE: /* false for NaN too */
		return v->f >= 0 && v->f < 0x1p64 ? (uint64_t)v->f : dflt;
	default:
		return dflt;
	}
}

double nt_value_f64(const struct nt_value *values, size_t n, const char *name, double dflt)
{
	const struct nt_value *v = nt_value_find(values, n, name);

	if (!v)
		return dflt;
	switch (v->kind) {
	case NT_V_BOOL:
	case NT_V_UINT:
		return (double)v->u;
	case NT_V_INT:
		return (double)v->i;
	case NT_V_DOUBLE:
		return v->f;
	default:
		return dflt;
	}
}

/* How much of the first n bytes to take so that no character is cut in two. */
static size_t whole_characters(const uint8_t *p, size_t n)
{
	size_t cut = n;

	/* p[n] is there: what continues a character says that it began before n. */
	for (size_t back = 0; back < 4 && cut && (p[cut] & 0xc0) == 0x80; back++)
		cut--;
	return (p[cut] & 0xc0) == 0x80 ? n : cut;
}

size_t nt_value_text(const struct nt_value *v, char *buf, size_t size)
{
	size_t n = 0;

	if (!size)
		return 0;
	if (v && v->kind == NT_V_UTF16) {
		n = nt_utf16_to_utf8(v->data, v->bytes, buf, size - 1);
	} else if (v && v->kind == NT_V_UTF8) {
		n = v->bytes;
		if (n > size - 1)
			n = whole_characters(v->data, size - 1);
		memcpy(buf, v->data, n);
	}
	buf[n] = '\0';
	return n;
}
