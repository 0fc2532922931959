/* SPDX-License-Identifier: MIT */
#include "analyzers/names.h"

enum { MAX_WRAPS = 8, MAX_GENERIC = 16, MAX_DEPTH = 32 };

/* What a name that begins with '<' stands for. */
enum piece {
	PIECE_PLAIN, /* nothing special */
	PIECE_STATE_MACHINE, /* <M>d__2: async method or iterator M */
	PIECE_LAMBDA, /* <M>b__0_1 */
	PIECE_LOCAL, /* <M>g__Local|0_1 */
	PIECE_CLOSURE, /* <>c, <>c__DisplayClass1_0: holds the variables of lambdas */
	PIECE_ENTRY, /* <Main>$: top-level statements */
	PIECE_FILE_LOCAL, /* <File>F0123__Name */
};

/* The place of the '>' that closes s[0] == '<', or s.n. */
static size_t closing_angle(struct an_slice s)
{
	size_t depth = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '<')
			depth++;
		else if (s.p[i] == '>' && --depth == 0)
			return i;
	}
	return s.n;
}

static bool ends_name(struct an_slice s, size_t at)
{
	return at == s.n || s.p[at] == '_' || s.p[at] == '`' || s.p[at] == '[';
}

/* Splits "<inner>rest"; *ret_inner is what it was made in, *ret_name a name of its own. */
static enum piece classify(struct an_slice s, struct an_slice *ret_inner, struct an_slice *ret_name)
{
	size_t close = s.n && s.p[0] == '<' ? closing_angle(s) : s.n;
	struct an_slice rest;

	if (close == s.n)
		return PIECE_PLAIN;
	*ret_inner = (struct an_slice){ .p = s.p + 1, .n = close - 1 };
	rest = an_slice_from(s, close + 1);
	if (!ret_inner->n) {
		if (rest.n && rest.p[0] == 'c' && ends_name(rest, 1))
			return PIECE_CLOSURE;
		return PIECE_PLAIN;
	}
	if (an_slice_is(rest, "$"))
		return PIECE_ENTRY;
	if (rest.n && rest.p[0] == 'd' && ends_name(rest, 1))
		return PIECE_STATE_MACHINE;
	if (rest.n && rest.p[0] == 'b' && ends_name(rest, 1))
		return PIECE_LAMBDA;
	if (an_slice_begins(rest, "g__")) {
		rest = an_slice_from(rest, 3);
		*ret_name = an_slice_cut(rest, an_slice_find(rest, '|'));
		return PIECE_LOCAL;
	}
	if (rest.n && rest.p[0] == 'F') {
		for (size_t i = 1; i + 2 < rest.n; i++) {
			if (rest.p[i] == '_' && rest.p[i + 1] == '_') {
				*ret_name = an_slice_from(rest, i + 2);
				return PIECE_FILE_LOCAL;
			}
		}
	}
	return PIECE_PLAIN;
}

/* A member's name without what the compiler wrapped around it. */
static void put_member(struct an_text *out, struct an_slice s)
{
	struct an_slice tail[MAX_WRAPS];
	size_t tails = 0;

	for (;;) {
		struct an_slice inner, name;
		enum piece piece = classify(s, &inner, &name);

		if (piece == PIECE_PLAIN || piece == PIECE_CLOSURE || tails == MAX_WRAPS)
			break;
		if (piece == PIECE_FILE_LOCAL) {
			s = name;
			continue;
		}
		if (piece == PIECE_LAMBDA)
			tail[tails++] = an_slice_of("<lambda>");
		else if (piece == PIECE_LOCAL)
			tail[tails++] = name;
		s = inner;
	}
	an_text_slice(out, s);
	while (tails) {
		an_text_char(out, '.');
		an_text_slice(out, tail[--tails]);
	}
}

void an_name_member(struct an_slice piece, char *buf, size_t size)
{
	struct an_text out = an_text_of(buf, size);

	put_member(&out, piece);
}

/* --- types --- */

/* The words of C# for types of the base library, by each spelling that events use. */
static const struct {
	const char *name;
	const char *plain; /* C# word */
	const char *unsigned_; /* C# word behind "unsigned", or NULL */
} words[] = {
	{ "bool", "bool", NULL },
	{ "char", "char", NULL },
	{ "float32", "float", NULL },
	{ "float64", "double", NULL },
	{ "int", "nint", "nuint" },
	{ "int16", "short", "ushort" },
	{ "int32", "int", "uint" },
	{ "int64", "long", "ulong" },
	{ "int8", "sbyte", "byte" },
	{ "object", "object", NULL },
	{ "string", "string", NULL },
	{ "uint", "nuint", NULL },
	{ "uint16", "ushort", NULL },
	{ "uint32", "uint", NULL },
	{ "uint64", "ulong", NULL },
	{ "uint8", "byte", NULL },
	{ "void", "void", NULL },
	{ "wchar", "char", NULL },
	{ "System.Boolean", "bool", NULL },
	{ "System.Byte", "byte", NULL },
	{ "System.Char", "char", NULL },
	{ "System.Decimal", "decimal", NULL },
	{ "System.Double", "double", NULL },
	{ "System.Int16", "short", NULL },
	{ "System.Int32", "int", NULL },
	{ "System.Int64", "long", NULL },
	{ "System.IntPtr", "nint", NULL },
	{ "System.Object", "object", NULL },
	{ "System.SByte", "sbyte", NULL },
	{ "System.Single", "float", NULL },
	{ "System.String", "string", NULL },
	{ "System.UInt16", "ushort", NULL },
	{ "System.UInt32", "uint", NULL },
	{ "System.UInt64", "ulong", NULL },
	{ "System.UIntPtr", "nuint", NULL },
	{ "System.Void", "void", NULL },
};

static bool is_delimiter(char c)
{
	return c == ' ' || c == '<' || c == '>' || c == '[' || c == ']' || c == ',' || c == '&' ||
	       c == '*' || c == '(' || c == ')';
}

static bool is_modifier(struct an_slice word)
{
	return an_slice_is(word, "class") || an_slice_is(word, "value") ||
	       an_slice_is(word, "valuetype") || an_slice_is(word, "instance") ||
	       an_slice_is(word, "pinned") || an_slice_is(word, "explicit") ||
	       an_slice_is(word, "native");
}

/* The word behind these is an attribute of the type that follows. */
static bool is_attribute(struct an_slice word)
{
	return an_slice_is(word, "required_modifier") || an_slice_is(word, "optional_modifier");
}

/* !0 and !!0 are the type parameters of the type and of the method. */
static void put_type_parameter(struct an_text *out, struct an_slice word)
{
	while (word.n && word.p[0] == '!')
		word = an_slice_from(word, 1);
	an_text_char(out, 'T');
	if (!an_slice_is(word, "0"))
		an_text_slice(out, word);
}

static void put_word(struct an_text *out, struct an_slice word, bool is_unsigned)
{
	size_t start = 0, depth = 0;

	if (word.p[0] == '!') {
		put_type_parameter(out, word);
		return;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!an_slice_is(word, words[i].name))
			continue;
		an_text_str(out, is_unsigned && words[i].unsigned_ ? words[i].unsigned_
								   : words[i].plain);
		return;
	}
	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		if (c == '<')
			depth++;
		else if (c == '>' && depth)
			depth--;
		else if (!depth && (c == '.' || c == '+' || c == '/') && i + 1 < word.n)
			start = i + 1;
	}
	word = an_slice_from(word, start);
	put_member(out, an_slice_cut(word, an_slice_find(word, '`')));
}

struct type_reader {
	struct an_text *out;
	struct an_slice s;
	size_t at;
	bool is_unsigned; /* the word before was "unsigned" */
	bool skip; /* the word before was one of is_attribute() */
	bool after; /* behind a type: '[' is an array or generic arguments */
	bool generic; /* ... of a type with arity: '[' opens generic arguments */
	size_t depth;
	char closes[MAX_DEPTH]; /* what the open brackets close with: '>' generic, ']' array */
};

/* A '<' that begins the name of a nested type, as in Stuck+<Fetch>d__2. */
static bool opens_name(struct an_slice s, size_t at)
{
	return s.p[at] == '<' && at && (s.p[at - 1] == '+' || s.p[at - 1] == '.');
}

static void read_word(struct type_reader *r)
{
	size_t end = r->at;
	struct an_slice word;

	while (end < r->s.n) {
		if (opens_name(r->s, end))
			end += closing_angle(an_slice_from(r->s, end));
		else if (is_delimiter(r->s.p[end]))
			break;
		if (end < r->s.n)
			end++;
	}
	word = (struct an_slice){ .p = r->s.p + r->at, .n = end - r->at };
	r->at = end;
	if (is_modifier(word))
		return;
	if (r->skip || is_attribute(word)) {
		r->skip = !r->skip;
		return;
	}
	if (an_slice_is(word, "unsigned")) {
		r->is_unsigned = true;
		return;
	}
	put_word(r->out, word, r->is_unsigned);
	r->is_unsigned = false;
	r->after = true;
	r->generic = an_slice_find(word, '`') < word.n;
}

/* '[' where a type begins names the assembly it is from; skipped. */
static void skip_assembly(struct type_reader *r)
{
	while (r->at < r->s.n && r->s.p[r->at] != ']')
		r->at++;
	if (r->at < r->s.n)
		r->at++;
}

static void read_open(struct type_reader *r, char c)
{
	bool generic = c == '<' || (c == '[' && r->generic);

	if (c == '[' && !r->after) {
		skip_assembly(r);
		return;
	}
	r->at++;
	an_text_char(r->out, generic ? '<' : c);
	if (r->depth < MAX_DEPTH)
		r->closes[r->depth] = generic ? '>' : c == '(' ? ')' : ']';
	r->depth++;
	r->after = r->generic = false;
	if (!generic && c == '[') /* bounds of an array: "0...," */
		while (r->at < r->s.n && r->s.p[r->at] != ']' && r->s.p[r->at] != ',')
			r->at++;
}

static void read_close(struct type_reader *r, char c)
{
	r->at++;
	if (r->depth)
		r->depth--;
	an_text_char(r->out, r->depth < MAX_DEPTH && r->closes[r->depth] ? r->closes[r->depth] : c);
	r->after = true;
	r->generic = false;
}

static void read_comma(struct type_reader *r)
{
	bool array = r->depth && r->depth <= MAX_DEPTH && r->closes[r->depth - 1] == ']';

	r->at++;
	an_text_str(r->out, array ? "," : ", ");
	r->after = r->generic = false;
	if (array)
		while (r->at < r->s.n && r->s.p[r->at] != ']' && r->s.p[r->at] != ',')
			r->at++;
}

static void put_type(struct an_text *out, struct an_slice s)
{
	struct type_reader r = { .out = out, .s = s };

	while (r.at < s.n) {
		char c = s.p[r.at];

		switch (c) {
		case ' ':
			r.at++;
			break;
		case '<':
		case '[':
		case '(':
			read_open(&r, c);
			break;
		case '>':
		case ']':
		case ')':
			read_close(&r, c);
			break;
		case ',':
			read_comma(&r);
			break;
		case '*':
		case '&':
			r.at++;
			an_text_char(out, c);
			r.after = true;
			r.generic = false;
			break;
		default:
			read_word(&r);
		}
	}
}

void an_name_type(struct an_slice type, char *buf, size_t size)
{
	struct an_text out = an_text_of(buf, size);

	put_type(&out, type);
}

/* --- full names --- */

/* The next piece of a list, up to a separator outside all brackets; *rest goes behind it. */
static struct an_slice next_part(struct an_slice *rest, char separator)
{
	struct an_slice part = *rest;
	size_t depth = 0, i;

	for (i = 0; i < part.n; i++) {
		char c = part.p[i];

		if (c == '<' || c == '[' || c == '(')
			depth++;
		else if ((c == '>' || c == ']' || c == ')') && depth)
			depth--;
		else if (c == separator && !depth)
			break;
	}
	*rest = an_slice_from(part, i < part.n ? i + 1 : i);
	return an_slice_cut(part, i);
}

/* "[A,B]" behind a type, as a list that is used up from the front. */
static struct an_slice generic_arguments(struct an_slice *type)
{
	size_t open = an_slice_find(*type, '[');
	struct an_slice list = an_slice_from(*type, open);

	*type = an_slice_cut(*type, open);
	if (list.n < 2 || list.p[list.n - 1] != ']')
		return an_slice_cut(list, 0);
	return (struct an_slice){ .p = list.p + 1, .n = list.n - 2 };
}

static size_t arity_of(struct an_slice s)
{
	size_t n = 0;

	for (size_t i = an_slice_find(s, '`') + 1; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		if (n < 1000)
			n = n * 10 + (size_t)(s.p[i] - '0');
	return n;
}

static void put_segment(struct an_text *out, struct an_slice segment, size_t arity,
			struct an_slice *arguments)
{
	put_member(out, an_slice_cut(segment, an_slice_find(segment, '`')));
	if (!arity)
		return;
	an_text_char(out, '<');
	for (size_t i = 0; i < arity && i < MAX_GENERIC; i++) {
		if (i)
			an_text_str(out, ", ");
		if (arguments->n)
			put_type(out, next_part(arguments, ','));
		else
			an_text_char(out, 'T');
	}
	an_text_char(out, '>');
}

void an_name_tidy(struct an_slice type, struct an_slice method, char *buf, size_t size)
{
	struct an_text out = an_text_of(buf, size);
	struct an_slice arguments = generic_arguments(&type);
	bool machine = false;

	if (an_slice_is(type, "dynamicClass"))
		type.n = 0;
	while (type.n) {
		struct an_slice segment = next_part(&type, '+');
		struct an_slice inner, name;
		enum piece piece = classify(segment, &inner, &name);
		size_t arity = arity_of(segment);

		machine = piece == PIECE_STATE_MACHINE;
		if (piece == PIECE_CLOSURE || !segment.n)
			continue;
		if (out.len)
			an_text_char(&out, '.');
		if (machine)
			put_member(&out, segment);
		else
			put_segment(&out, segment, arity, &arguments);
	}
	if (machine && an_slice_is(method, "MoveNext"))
		return;
	if (out.len)
		an_text_char(&out, '.');
	put_member(&out, method);
}

/* --- signatures --- */

void an_name_args(struct an_slice signature, char *buf, size_t size)
{
	struct an_text out = an_text_of(buf, size);
	struct an_slice rest;
	size_t open = signature.n, close = signature.n;
	bool first = true;

	for (size_t i = 0; i + 2 < signature.n && open == signature.n; i++)
		if (!memcmp(signature.p + i, "  (", 3))
			open = i + 2;
	if (open == signature.n)
		open = an_slice_find(signature, '(');
	while (close > open && signature.p[close - 1] != ')')
		close--;
	if (close <= open)
		return;
	rest = (struct an_slice){ .p = signature.p + open + 1, .n = close - open - 2 };
	an_text_char(&out, '(');
	while (rest.n) {
		struct an_slice part = next_part(&rest, ',');

		if (!first)
			an_text_str(&out, ", ");
		first = false;
		if (part.n && part.p[part.n - 1] == '&') {
			an_text_str(&out, "ref ");
			part.n--;
		}
		put_type(&out, part);
	}
	an_text_char(&out, ')');
}

/* --- all instantiations of a generic --- */

static bool is_word(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* Where the bracket that opens at s[at] is closed, or the end. */
static size_t skip_brackets(struct an_slice s, size_t at)
{
	char open = s.p[at], close = open == '<' ? '>' : ']';
	size_t depth = 0;

	for (; at < s.n; at++) {
		depth += s.p[at] == open;
		depth -= s.p[at] == close;
		if (!depth)
			return at;
	}
	return s.n;
}

void an_name_fold(struct an_slice name, char *buf, size_t size)
{
	struct an_text out = an_text_of(buf, size);

	for (size_t i = 0; i < name.n; i++) {
		bool generic = i && is_word(name.p[i - 1]);

		if (generic && name.p[i] == '<') {
			i = skip_brackets(name, i);
			an_text_str(&out, "<>");
		} else if (generic && name.p[i] == '[' && i + 1 < name.n && name.p[i + 1] != ']') {
			i = skip_brackets(name, i);
		} else {
			an_text_char(&out, name.p[i]);
		}
	}
}

/* --- perf maps --- */

static struct an_slice without_tier(struct an_slice text)
{
	size_t open = text.n;

	if (!text.n || text.p[text.n - 1] != ']')
		return text;
	while (open && text.p[open - 1] != '[')
		open--;
	for (size_t i = open; i + 1 < text.n; i++) {
		char c = text.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
			return text;
	}
	if (open < 2 || open + 1 >= text.n)
		return text;
	return an_slice_cut(text, open - 1);
}

void an_name_split_perf(struct an_slice text, struct an_perf_name *ret)
{
	struct an_slice s = without_tier(text);
	size_t open = 0, close, paren, colons;

	*ret = (struct an_perf_name){ .method = s };
	if (s.n < text.n)
		ret->tier = (struct an_slice){ .p = text.p + s.n + 1, .n = text.n - s.n - 2 };
	while (open + 1 < s.n && !(s.p[open] == ' ' && s.p[open + 1] == '['))
		open++;
	if (open + 1 >= s.n)
		return;
	close = open + an_slice_find(an_slice_from(s, open), ']');
	if (close + 2 >= s.n || s.p[close + 1] != ' ')
		return;
	paren = close + an_slice_find(an_slice_from(s, close), '(');
	colons = paren;
	while (colons > close + 2 && !(s.p[colons - 1] == ':' && s.p[colons - 2] == ':'))
		colons--;
	if (colons <= close + 2)
		return;
	ret->returns = an_slice_cut(s, open);
	ret->module = (struct an_slice){ .p = s.p + open + 2, .n = close - open - 2 };
	ret->type = (struct an_slice){ .p = s.p + close + 2, .n = colons - 2 - (close + 2) };
	ret->method = (struct an_slice){ .p = s.p + colons, .n = paren - colons };
	ret->arguments = an_slice_from(s, paren);
}
