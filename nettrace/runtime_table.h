/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_RUNTIME_TABLE_H
#define NETTRACE_RUNTIME_TABLE_H

/*
 * The events that runtimes send without a usable description, as data: one row an event.
 *
 * Event names are those of the public ETW manifest without the version suffix (GCStart, not
 * GCStart_V2); the rundown provider has its own (MethodDCEndVerbose).  Field names are those of
 * the manifest too, as Microsoft's own reader prints them: MethodID, ModuleID, MethodStartAddress,
 * MethodSize, MethodToken, MethodFlags, MethodNamespace, MethodName, MethodSignature, ReJITID,
 * ModuleILPath, ClrInstanceID.  The records of bulk events are the array "Values", as there.
 * The same thing has the same name in every row.
 *
 * The fields of a row are one string, compiled by runtime_events.c:
 *
 *	Name:type		a field
 *	Name:type@2		since version 2
 *	Name:type<1		only in versions before 1
 *	Name:type[Count]	as many as the field Count before it says
 *	Name:bytes[Size]	as many bytes as the field Size before it says
 *	Name:{…}[Count]		records of the fields between the braces
 *	@3 Name:…		(first word) versions before 3 are another event: left undecoded
 *
 *	u8 u16 u32 u64 i32 i64 f64	little-endian numbers
 *	b4		boolean of 4 bytes		ptr	as wide as a pointer of the process
 *	uvar		LEB128				guid	16 bytes
 *	str		UTF-16 with terminator		ansi	a byte a character, and one more
 *	str8		16-bit length, then UTF-8	pad2 pad4	that many bytes of padding
 *	padptr		padding in front of a pointer that follows three 32-bit words
 *	padrest		what remains of a record whose length only the payload tells
 */

#include "nettrace/arena.h"
#include "nettrace/nettrace.h"

struct nt_table_row {
	uint16_t id;
	const char *name;
	const char *fields; /* "": none */
};

/* Sorted by id, no id twice. */
struct nt_table_rows {
	const struct nt_table_row *rows;
	size_t count;
};

extern const struct nt_table_rows nt_table_runtime; /* runtime_table.c */
extern const struct nt_table_rows nt_table_rundown; /* the rest: runtime_table_more.c */
extern const struct nt_table_rows nt_table_private;
extern const struct nt_table_rows nt_table_sampler;
extern const struct nt_table_rows nt_table_eventpipe;
extern const struct nt_table_rows nt_table_tpl;
extern const struct nt_table_rows nt_table_mono;
extern const struct nt_table_rows nt_table_universal;

/* All rows of a provider; none for a provider without a table. */
struct nt_table_rows nt_table_rows_of(enum nt_provider provider);

/*
 * The fields that such a string has in that version; see nt_table_layout().  NT_EFORMAT when the
 * string is not in the notation, which a test makes sure of for each row.
 */
NT_MUST_CHECK enum nt_status nt_table_compile(struct nt_arena *arena, const char *row,
					      uint32_t version, const struct nt_field **ret_fields,
					      size_t *ret_count, bool *ret_known);

/* What the runtime and the rundown provider have in common. */
#define NT_CLR	"ClrInstanceID:u16"
#define NT_CLR1 NT_CLR "@1"

#define NT_METHOD                                                                                  \
	"MethodID:u64 ModuleID:u64 MethodStartAddress:u64 MethodSize:u32 MethodToken:u32 "         \
	"MethodFlags:u32 "
#define NT_METHOD_NAMES	       "MethodNamespace:str MethodName:str MethodSignature:str "
#define NT_METHOD_LOAD	       NT_METHOD NT_CLR1 " ReJITID:u64@2"
#define NT_METHOD_LOAD_VERBOSE NT_METHOD NT_METHOD_NAMES NT_CLR1 " ReJITID:u64@2"

#define NT_IL_MAP                                                                                  \
	"MethodID:u64 ReJITID:u64 MethodExtent:u8 CountOfMapEntries:u16 "                          \
	"ILOffsets:i32[CountOfMapEntries] NativeOffsets:i32[CountOfMapEntries] " NT_CLR            \
	" ILVersionID:u64@1"

#define NT_DOMAIN_MODULE                                                                           \
	"ModuleID:u64 AssemblyID:u64 AppDomainID:u64 ModuleFlags:u32 Reserved1:u32 "               \
	"ModuleILPath:str ModuleNativePath:str " NT_CLR1

#define NT_MODULE                                                                                  \
	"ModuleID:u64 AssemblyID:u64 ModuleFlags:u32 Reserved1:u32 ModuleILPath:str "              \
	"ModuleNativePath:str " NT_CLR1                                                            \
	" ManagedPdbSignature:guid@2 ManagedPdbAge:u32@2 ManagedPdbBuildPath:str@2 "               \
	"NativePdbSignature:guid@2 NativePdbAge:u32@2 NativePdbBuildPath:str@2 "                   \
	"NativeBuildID:str@3"

#define NT_ASSEMBLY                                                                                \
	"AssemblyID:u64 AppDomainID:u64 BindingID:u64@1 AssemblyFlags:u32 "                        \
	"FullyQualifiedAssemblyName:str " NT_CLR1

#define NT_APP_DOMAIN                                                                              \
	"AppDomainID:u64 AppDomainFlags:u32 AppDomainName:str AppDomainIndex:u32@1 " NT_CLR1

#define NT_THREAD                                                                                  \
	"ManagedThreadID:u64 AppDomainID:u64 Flags:u32 ManagedThreadIndex:u32 "                    \
	"OSThreadID:u32 " NT_CLR

#define NT_MODULE_RANGE NT_CLR " ModuleID:u64 RangeBegin:u32 RangeSize:u32 RangeType:u8"

#define NT_RUNTIME_INFORMATION                                                                     \
	NT_CLR " Sku:u16 BclMajorVersion:u16 BclMinorVersion:u16 BclBuildNumber:u16 "              \
	       "BclQfeNumber:u16 VMMajorVersion:u16 VMMinorVersion:u16 VMBuildNumber:u16 "         \
	       "VMQfeNumber:u16 StartupFlags:u32 StartupMode:u8 CommandLine:str "                  \
	       "ComObjectGuid:guid RuntimeDllPath:str"

#define NT_CODE_SYMBOLS                                                                            \
	"ModuleId:u64 TotalChunks:u16 ChunkNumber:u16 ChunkLength:u32 "                            \
	"Chunk:bytes[ChunkLength] " NT_CLR

#define NT_TIERED_SETTINGS NT_CLR " Flags:u32"
#define NT_CHECKPOINT	   NT_CLR " Name:str Timestamp:i64"

#endif
