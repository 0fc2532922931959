/* SPDX-License-Identifier: MIT */
#include "src/base/csv.h"

#include <string.h>

#include "src/base/utf8.h"

void csv_text(struct out *o, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	bool quoted = len && text[strcspn(text, "\",\n\r")];

	if (quoted)
		out_char(o, '"');
	for (size_t i = 0, used; i < len; i += used) {
		char shown[32];

		utf8_next(text + i, len - i, &used);
		if (text[i] == '"')
			out_text(o, "\"\"");
		else if (text[i] == '\n' || text[i] == '\r')
			out_char(o, text[i]);
		else
			out_write(o, shown, utf8_escape(text + i, used, shown, sizeof(shown)));
	}
	if (quoted)
		out_char(o, '"');
}
