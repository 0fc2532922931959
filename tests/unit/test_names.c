/* SPDX-License-Identifier: MIT */
/* Names as compilers write them, and as people do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzers/names.h"

static void check_tidy(const char *type, const char *method, const char *want)
{
	char buf[256];

	an_name_tidy(an_slice_of(type), an_slice_of(method), buf, sizeof(buf));
	assert_string_equal(buf, want);
}

static void async_methods_have_their_own_name(void **state)
{
	(void)state;
	check_tidy("Shop.Stuck+<FetchPriceAsync>d__2", "MoveNext", "Shop.Stuck.FetchPriceAsync");
	check_tidy("Shop.Stuck+<Find>d__2`1[System.__Canon]", "MoveNext", "Shop.Stuck.Find");
	check_tidy("Shop.Stuck+<Find>d__2", "SetStateMachine", "Shop.Stuck.Find.SetStateMachine");
	check_tidy("Shop.Program+<<Main>$>d__0", "MoveNext", "Shop.Program.Main");
	check_tidy("Shop.Cart`1+<Load>d__3[System.Int32]", "MoveNext", "Shop.Cart<int>.Load");
}

static void lambdas_and_local_functions_name_their_method(void **state)
{
	(void)state;
	check_tidy("Shop.Program+<>c", "<Main>b__0_1", "Shop.Program.Main.<lambda>");
	check_tidy("Shop.Program+<>c__DisplayClass0_0", "<Main>b__1", "Shop.Program.Main.<lambda>");
	check_tidy("Shop.Program+<>c+<<Main>b__0_1>d", "MoveNext", "Shop.Program.Main.<lambda>");
	check_tidy("Shop.Cart", "<Total>g__Round|4_0", "Shop.Cart.Total.Round");
	check_tidy("Shop.Cart+<<Total>g__Round|4_0>d", "MoveNext", "Shop.Cart.Total.Round");
	check_tidy("Shop.Cart+<>c__DisplayClass1_0", "<<Total>g__Round|0>b__2",
		   "Shop.Cart.Total.Round.<lambda>");
	check_tidy("Shop.Cart+<>c__DisplayClass1_0`1[System.__Canon]", "<Total>b__0",
		   "Shop.Cart.Total.<lambda>");
}

static void nested_and_generic_types_read_like_source(void **state)
{
	(void)state;
	check_tidy("Shop.Outer+Inner", "Run", "Shop.Outer.Inner.Run");
	check_tidy("System.Collections.Generic.List`1[System.Int32]", "Add",
		   "System.Collections.Generic.List<int>.Add");
	check_tidy("System.Collections.Generic.Dictionary`2+Enumerator[System.String,Shop.Order]",
		   "MoveNext",
		   "System.Collections.Generic.Dictionary<string, Order>.Enumerator.MoveNext");
	check_tidy(
		"A`1+B`2[System.Int32,System.Byte,System.Collections.Generic.List`1[System.Char]]",
		"M", "A<int>.B<byte, List<char>>.M");
	check_tidy("Shop.Pool`1", "Get", "Shop.Pool<T>.Get");
	check_tidy("X`1[Shop.Stuck+<Fetch>d__2]", "MoveNext", "X<Fetch>.MoveNext");
	check_tidy("X`1[System.Int32[]]", "M", "X<int[]>.M");
}

static void other_names_stay(void **state)
{
	(void)state;
	check_tidy("Shop.Order", ".ctor", "Shop.Order..ctor");
	check_tidy("Program", "<Main>$", "Program.Main");
	check_tidy("dynamicClass", "IL_STUB_PInvoke", "IL_STUB_PInvoke");
	check_tidy("", "Main", "Main");
	check_tidy("Shop.X", "System.IDisposable.Dispose", "Shop.X.System.IDisposable.Dispose");
	check_tidy("<PrivateImplementationDetails>", "ComputeStringHash",
		   "<PrivateImplementationDetails>.ComputeStringHash");
	check_tidy("Shop.X", "<unclosed", "Shop.X.<unclosed");
	check_tidy("<Program>F1A2B__Helper", "Go", "Helper.Go");
	check_tidy("", "", "");
	check_tidy("+", "M", "M");
	check_tidy("A[", "M", "A.M");
	check_tidy("A`99999999999[X]", "M", "A<X, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T>.M");
}

/* Wrapped deeper than anybody writes: it ends, and nothing is lost. */
static void wrapping_without_end_ends(void **state)
{
	char deep[4096];
	char buf[8192];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < 500; i++)
		deep[n++] = '<';
	deep[n++] = 'M';
	for (size_t i = 0; i < 500; i++) {
		memcpy(deep + n, ">b__1", 5);
		n += 5;
	}
	an_name_member((struct an_slice){ deep, n }, buf, sizeof(buf));
	assert_non_null(strstr(buf, "<lambda>.<lambda>.<lambda>"));
	assert_non_null(strstr(buf, "M>b__1"));
}

static void check_args(const char *signature, const char *want)
{
	char buf[256];

	an_name_args(an_slice_of(signature), buf, sizeof(buf));
	assert_string_equal(buf, want);
}

static void signatures_become_short_argument_lists(void **state)
{
	(void)state;
	check_args("void  ()", "()");
	check_args("instance void  (class System.String,int32&)", "(string, ref int)");
	check_args("int32  (unsigned int8*,unsigned int64,wchar,float64)",
		   "(byte*, ulong, char, double)");
	check_args("void  (value class System.ReadOnlySpan`1<wchar>)", "(ReadOnlySpan<char>)");
	check_args("class X  (class [System.Runtime]System.Collections.Generic.Dictionary`2<class "
		   "System.String,value class System.Collections.Generic.List`1<int32>>,bool)",
		   "(Dictionary<string, List<int>>, bool)");
	check_args("void  (!!0[]&,int32)", "(ref T[], int)");
	check_args("void  (!1,!!0)", "(T1, T)");
	check_args("void  (int32[0...,0...])", "(int[,])");
	check_args("void  (required_modifier System.InAttribute value class Shop.Order&)",
		   "(ref Order)");
	check_args("void  (native int,unsigned int)", "(nint, nuint)");
	check_args("void (*)(int32)  (bool)", "(bool)");
	check_args("no arguments", "");
	check_args("", "");
	check_args("void  (", "");
	check_args("void  (class", "");
}

static void brackets_of_any_kind_are_survived(void **state)
{
	char text[600];
	char buf[2048];

	(void)state;
	memset(text, '<', 200);
	memset(text + 200, '[', 200);
	memset(text + 400, ',', 100);
	memset(text + 500, '>', 100);
	an_name_type((struct an_slice){ text, sizeof(text) }, buf, sizeof(buf));
	an_name_tidy((struct an_slice){ text, sizeof(text) }, (struct an_slice){ text, 300 }, buf,
		     sizeof(buf));
	an_name_args((struct an_slice){ text, sizeof(text) }, buf, sizeof(buf));
	an_name_member((struct an_slice){ text, 0 }, buf, sizeof(buf));
	assert_string_equal(buf, "");
}

/* The terminator is always there, and nothing behind it is touched. */
static void what_does_not_fit_is_cut(void **state)
{
	char buf[32];

	(void)state;
	for (size_t size = 1; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		an_name_tidy(an_slice_of("Shop.Stuck+<FetchPriceAsync>d__2"),
			     an_slice_of("MoveNext"), buf, size);
		assert_memory_equal(buf, "Shop.Stuck.FetchPriceAsync",
				    size - 1 < 26 ? size - 1 : 26);
		assert_int_equal(buf[size - 1 < 26 ? size - 1 : 26], 0);
		for (size_t i = size; i < sizeof(buf); i++)
			assert_int_equal(buf[i], '#');
	}
}

static void check_slice(struct an_slice s, const char *want)
{
	assert_int_equal(s.n, strlen(want));
	if (s.n)
		assert_memory_equal(s.p, want, s.n);
}

static void names_of_perf_maps_are_taken_apart(void **state)
{
	struct an_perf_name n;

	(void)state;
	an_name_split_perf(an_slice_of("void [Shop] Shop.Cpu::Hot(int32)[OptimizedTier1OSR]"), &n);
	check_slice(n.returns, "void");
	check_slice(n.module, "Shop");
	check_slice(n.type, "Shop.Cpu");
	check_slice(n.method, "Hot");
	check_slice(n.arguments, "(int32)");
	check_slice(n.tier, "OptimizedTier1OSR");
	an_name_split_perf(an_slice_of("class X [A] N.T`1[System.__Canon]::.ctor(!0)"), &n);
	check_slice(n.type, "N.T`1[System.__Canon]");
	check_slice(n.method, ".ctor");
	an_name_split_perf(an_slice_of("__memset_avx512_unaligned_erms"), &n);
	check_slice(n.method, "__memset_avx512_unaligned_erms");
	check_slice(n.module, "");
	check_slice(n.tier, "");
	an_name_split_perf(an_slice_of("std::vector<int>::push_back(int&&)"), &n);
	check_slice(n.method, "std::vector<int>::push_back(int&&)");
	an_name_split_perf(an_slice_of("stub [Something]"), &n);
	check_slice(n.method, "stub ");
	an_name_split_perf(an_slice_of("void [Shop"), &n);
	check_slice(n.method, "void [Shop");
	an_name_split_perf(an_slice_of(""), &n);
	check_slice(n.method, "");
	an_name_split_perf(an_slice_of("[]"), &n);
	check_slice(n.method, "[]");
}

static void check_fold(const char *name, const char *want)
{
	char buf[64];

	an_name_fold(an_slice_of(name), buf, sizeof(buf));
	assert_string_equal(buf, want);
}

static void instantiations_fold_into_one_name(void **state)
{
	(void)state;
	check_fold("A.List<int>.Add", "A.List<>.Add");
	check_fold("A.List`1[System.Int32].Add", "A.List`1.Add");
	check_fold("Map<string, List<int[]>>.Enumerator.Next", "Map<>.Enumerator.Next");
	check_fold("Map`2+Enumerator[System.String,B`1[C]].Next", "Map`2+Enumerator.Next");
	check_fold("Shop.Sort[System.Int32]", "Shop.Sort");
	check_fold("Shop.Main.<lambda>", "Shop.Main.<lambda>"); /* nothing before it is a name */
	check_fold("<Main>$", "<Main>$");
	check_fold("Shop.Cut[]", "Shop.Cut[]");
	check_fold("A.List<int", "A.List<>");
	check_fold("A.List`1[int", "A.List`1");
	check_fold("A[", "A[");
	check_fold("", "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(async_methods_have_their_own_name),
		cmocka_unit_test(lambdas_and_local_functions_name_their_method),
		cmocka_unit_test(nested_and_generic_types_read_like_source),
		cmocka_unit_test(other_names_stay),
		cmocka_unit_test(wrapping_without_end_ends),
		cmocka_unit_test(signatures_become_short_argument_lists),
		cmocka_unit_test(brackets_of_any_kind_are_survived),
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(names_of_perf_maps_are_taken_apart),
		cmocka_unit_test(instantiations_fold_into_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
