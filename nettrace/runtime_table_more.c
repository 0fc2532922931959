/* SPDX-License-Identifier: MIT */
/* The smaller providers.  Notation and naming: runtime_table.h. */
#include "nettrace/runtime_table.h"

#include <stddef.h>

#define ROWS(table)                                                                                \
	{                                                                                          \
		(table), sizeof(table) / sizeof((table)[0])                                        \
	}

/* Microsoft-Windows-DotNETRuntimeRundown.  Its ids mean other things than the runtime's. */
static const struct nt_table_row rundown[] = {
	{ 10, "GCSettingsRundown",
	  "HardLimit:u64 LOHThreshold:u64 PhysicalMemoryConfig:u64 Gen0MinBudgetConfig:u64 "
	  "Gen0MaxBudgetConfig:u64 HighMemPercentConfig:u32 BitSettings:u32 " NT_CLR },
	{ 141, "MethodDCStart", NT_METHOD_LOAD },
	{ 142, "MethodDCEnd", NT_METHOD_LOAD },
	{ 143, "MethodDCStartVerbose", NT_METHOD_LOAD_VERBOSE },
	{ 144, "MethodDCEndVerbose", NT_METHOD_LOAD_VERBOSE },
	{ 145, "DCStartComplete", NT_CLR1 },
	{ 146, "DCEndComplete", NT_CLR1 },
	{ 147, "DCStartInit", NT_CLR1 },
	{ 148, "DCEndInit", NT_CLR1 },
	{ 149, "MethodDCStartILToNativeMap", NT_IL_MAP },
	{ 150, "MethodDCEndILToNativeMap", NT_IL_MAP },
	{ 151, "DomainModuleDCStart", NT_DOMAIN_MODULE },
	{ 152, "DomainModuleDCEnd", NT_DOMAIN_MODULE },
	{ 153, "ModuleDCStart", NT_MODULE },
	{ 154, "ModuleDCEnd", NT_MODULE },
	{ 155, "AssemblyDCStart", NT_ASSEMBLY },
	{ 156, "AssemblyDCEnd", NT_ASSEMBLY },
	{ 157, "AppDomainDCStart", NT_APP_DOMAIN },
	{ 158, "AppDomainDCEnd", NT_APP_DOMAIN },
	{ 159, "ThreadDC", NT_THREAD },
	{ 160, "ModuleRangeDCStart", NT_MODULE_RANGE },
	{ 161, "ModuleRangeDCEnd", NT_MODULE_RANGE },
	{ 187, "RuntimeInformationDCStart", NT_RUNTIME_INFORMATION },
	{ 188, "CodeSymbolsRundownStart", NT_CODE_SYMBOLS },
	{ 280, "TieredCompilationSettingsDCStart", NT_TIERED_SETTINGS },
	{ 300, "ExecutionCheckpointDCEnd", NT_CHECKPOINT },
};

/* Microsoft-Windows-DotNETRuntimePrivate: the steps of background collections. */
static const struct nt_table_row private_rows[] = {
	{ 11, "BGCBegin", NT_CLR },
	{ 12, "BGC1stNonConEnd", NT_CLR },
	{ 13, "BGC1stConEnd", NT_CLR },
	{ 14, "BGC2ndNonConBegin", NT_CLR },
	{ 15, "BGC2ndNonConEnd", NT_CLR },
	{ 16, "BGC2ndConBegin", NT_CLR },
	{ 17, "BGC2ndConEnd", NT_CLR },
	{ 18, "BGCPlanEnd", NT_CLR },
	{ 19, "BGCSweepEnd", NT_CLR },
	{ 20, "BGCDrainMark", "Objects:u64 " NT_CLR },
	{ 21, "BGCRevisit", "Pages:u64 Objects:u64 IsLarge:u32 " NT_CLR },
	{ 22, "BGCOverflow", "Min:u64 Max:u64 Objects:u64 IsLarge:u32 " NT_CLR " GenNumber:u32@1" },
	{ 23, "BGCAllocWaitBegin", "Reason:u32 " NT_CLR },
	{ 24, "BGCAllocWaitEnd", "Reason:u32 " NT_CLR },
	{ 25, "GCFullNotify", "GenNumber:u32 IsAlloc:u32 " NT_CLR },
	{ 26, "BGC1stSweepEnd", "GenNumber:u32 " NT_CLR },
	{ 199, "PinPlugAtGCTime", "PlugStart:ptr PlugEnd:ptr GapBeforeSize:ptr " NT_CLR },
};

/* Microsoft-DotNETCore-SampleProfiler.  Type: 0 error, 1 external, 2 managed. */
static const struct nt_table_row sampler[] = {
	{ 0, "ThreadSample", "Type:u32" },
};

/* Microsoft-DotNETCore-EventPipe */
static const struct nt_table_row eventpipe[] = {
	{ 1, "ProcessInfo", "CommandLine:str OSInformation:str@1 ArchInformation:str@1" },
};

/*
 * System.Threading.Tasks.TplEventSource describes its events itself; these rows are for streams in
 * which the description is missing.
 */
#define TASK "OriginatingTaskSchedulerID:i32 OriginatingTaskID:i32 "

static const struct nt_table_row tpl[] = {
	{ 7, "TaskScheduled",
	  TASK "TaskID:i32 CreatingTaskID:i32 TaskCreationOptions:i32 appDomain:i32" },
	{ 8, "TaskStarted", TASK "TaskID:i32" },
	{ 9, "TaskCompleted", TASK "TaskID:i32 IsExceptional:b4" },
	{ 10, "TaskWaitBegin", TASK "TaskID:i32 Behavior:i32 ContinueWithTaskID:i32" },
	{ 11, "TaskWaitEnd", TASK "TaskID:i32" },
	{ 12, "AwaitTaskContinuationScheduled", TASK "ContinueWithTaskId:i32" },
	{ 13, "TaskWaitContinuationComplete", "TaskID:i32" },
	{ 14, "TraceOperationBegin", "TaskID:i32 OperationName:str RelatedContext:i64" },
	{ 15, "TraceOperationEnd", "TaskID:i32 Status:i32" },
	{ 16, "TraceOperationRelation", "TaskID:i32 Relation:i32" },
	{ 17, "TraceSynchronousWorkBegin", "TaskID:i32 Work:i32" },
	{ 18, "TraceSynchronousWorkEnd", "Work:i32" },
	{ 19, "TaskWaitContinuationStarted", "TaskID:i32" },
	{ 20, "RunningContinuation", "TaskID:i32 Object:i64" },
	{ 21, "RunningContinuationList", "TaskID:i32 Index:i32 Object:i64" },
	{ 23, "DebugFacilityMessage", "Facility:str Message:str" },
	{ 24, "DebugFacilityMessage1", "Facility:str Message:str Value1:str" },
	{ 25, "SetActivityId", "NewId:guid" },
	{ 26, "NewID", "TaskID:i32" },
	{ 27, "IncompleteAsyncMethod", "StateMachineDescription:str" },
};

/* Microsoft-DotNETRuntimeMonoProfiler */
#define OBJECT "ObjectID:ptr"
#define THREAD "ThreadID:u64"

static const struct nt_table_row mono[] = {
	{ 16, "ClassLoaded", "ClassID:u64 ModuleID:u64 ClassName:str@1" },
	{ 19, "VTableLoaded", "VTableID:u64 ClassID:u64 AppDomainID:u64" },
	{ 38, "GCEvent", "GCEventType:u8 GCGeneration:u32" },
	{ 39, "GCAllocation", "VTableID:u64 ObjectID:ptr ObjectSize:u64" },
	{ 40, "GCMoves", "Count:u32 Values:{ObjectID:ptr NewObjectID:ptr}[Count]" },
	{ 41, "GCResize", "NewSize:u64" },
	{ 42, "GCHandleCreated", "HandleID:u64 HandleType:u8 ObjectID:ptr" },
	{ 43, "GCHandleDeleted", "HandleID:u64 HandleType:u8" },
	{ 44, "GCFinalizing", "" },
	{ 45, "GCFinalized", "" },
	{ 46, "GCFinalizingObject", OBJECT },
	{ 47, "GCFinalizedObject", OBJECT },
	{ 48, "GCRootRegister",
	  "RootID:ptr RootSize:u64 RootType:u8 RootKeyID:u64 RootKeyName:str" },
	{ 49, "GCRootUnregister", "RootID:ptr" },
	{ 50, "GCRoots", "Count:u32 Values:{ObjectID:ptr AddressID:ptr}[Count]" },
	{ 51, "GCHeapDumpStart", "HeapCollectParam:str" },
	{ 52, "GCHeapDumpStop", "" },
	{ 53, "GCHeapDumpObjectReference",
	  "ObjectID:ptr VTableID:u64 ObjectSize:u64 ObjectGeneration:u8 Count:u32 "
	  "Values:{ReferencesOffset:u32 ObjectID:ptr}[Count]" },
	{ 54, "MonitorContention", OBJECT },
	{ 55, "MonitorFailed", OBJECT },
	{ 56, "MonitorAcquired", OBJECT },
	{ 57, "ThreadStarted", THREAD },
	{ 58, "ThreadStopping", THREAD },
	{ 59, "ThreadStopped", THREAD },
	{ 60, "ThreadExited", THREAD },
	{ 61, "ThreadName", "ThreadID:u64 ThreadName:str" },
	{ 62, "JitDoneVerbose", "MethodID:u64 " NT_METHOD_NAMES },
	{ 63, "GCHeapDumpVTableClassReference",
	  "VTableID:u64 ClassID:u64 ModuleID:u64 ClassName:str" },
};

/*
 * Universal.System.  The stream's own description calls these strings arrays of characters and
 * leaves the last two of ProcessMapping out, so nt_table_overrides() prefers this table.
 */
#define PROCESS "NamespaceId:uvar Name:str8 NamespaceName:str8"

static const struct nt_table_row universal[] = {
	{ 0, "ExistingProcess", PROCESS },
	{ 1, "ProcessCreate", PROCESS },
	{ 2, "ProcessExit", "" },
	{ 3, "ProcessMapping",
	  "Id:uvar StartAddress:uvar EndAddress:uvar FileOffset:uvar FileName:str8 "
	  "MetadataId:uvar SymbolMetadata:str8 VersionMetadata:str8" },
	{ 4, "ProcessSymbol",
	  "Id:uvar MappingId:uvar StartAddress:uvar EndAddress:uvar Name:str8" },
	{ 5, "ProcessMappingMetadata", "Id:uvar SymbolMetadata:str8 VersionMetadata:str8" },
};

const struct nt_table_rows nt_table_rundown = ROWS(rundown);
const struct nt_table_rows nt_table_private = ROWS(private_rows);
const struct nt_table_rows nt_table_sampler = ROWS(sampler);
const struct nt_table_rows nt_table_eventpipe = ROWS(eventpipe);
const struct nt_table_rows nt_table_tpl = ROWS(tpl);
const struct nt_table_rows nt_table_mono = ROWS(mono);
const struct nt_table_rows nt_table_universal = ROWS(universal);
