/* SPDX-License-Identifier: MIT */
/* Microsoft-Windows-DotNETRuntime.  Notation and naming: runtime_table.h. */
#include "nettrace/runtime_table.h"

#include <stddef.h>

#define ROWS(table)                                                                                \
	{                                                                                          \
		(table), sizeof(table) / sizeof((table)[0])                                        \
	}

/* Start of a bulk event whose events are numbered within a heap walk. */
#define BULK "Index:u32 Count:u32 " NT_CLR " "

#define WORKER	"ActiveWorkerThreadCount:u32 RetiredWorkerThreadCount:u32 " NT_CLR
#define WORKER0 "WorkerThreadCount:u32 RetiredWorkerThreads:u32"
#define IO	"IOThreadCount:u32 RetiredIOThreads:u32 " NT_CLR1
#define SUSPEND "ClrThreadID:u32 CpuUtilization:u32"
#define MARK	"HeapNum:u32 " NT_CLR
#define SAMPLED                                                                                    \
	"Address:ptr TypeID:ptr ObjectCountForTypeSample:u32 TotalSizeForTypeSample:u64 " NT_CLR
#define HANDLING "EntryEIP:u64 MethodID:u64 MethodName:str " NT_CLR
#define COMPILED                                                                                   \
	"MethodBeingCompiledNamespace:str MethodBeingCompiledName:str "                            \
	"MethodBeingCompiledNameSignature:str "
#define INLINING                                                                                   \
	COMPILED "InlinerNamespace:str InlinerName:str InlinerNameSignature:str "                  \
		 "InlineeNamespace:str InlineeName:str InlineeNameSignature:str "
#define TAIL_CALL                                                                                  \
	COMPILED "CallerNamespace:str CallerName:str CallerNameSignature:str "                     \
		 "CalleeNamespace:str CalleeName:str CalleeNameSignature:str TailPrefix:b4 "
#define ASSEMBLY_LOAD                                                                              \
	NT_CLR " AssemblyName:str AssemblyPath:str RequestingAssembly:str "                        \
	       "AssemblyLoadContext:str RequestingAssemblyLoadContext:str"
#define RESULT " ResultAssemblyName:str ResultAssemblyPath:str"

static const struct nt_table_row runtime[] = {
	/* garbage collections */
	{ 1, "GCStart",
	  "Count:u32 Depth:u32@1 Reason:u32 Type:u32@1 " NT_CLR1 " ClientSequenceNumber:u64@2" },
	{ 2, "GCEnd", "Count:u32 Depth:u16<1 Depth:u32@1 " NT_CLR1 },
	{ 3, "GCRestartEEEnd", NT_CLR1 },
	{ 4, "GCHeapStats",
	  "GenerationSize0:u64 TotalPromotedSize0:u64 GenerationSize1:u64 TotalPromotedSize1:u64 "
	  "GenerationSize2:u64 TotalPromotedSize2:u64 GenerationSize3:u64 TotalPromotedSize3:u64 "
	  "FinalizationPromotedSize:u64 FinalizationPromotedCount:u64 PinnedObjectCount:u32 "
	  "SinkBlockCount:u32 GCHandleCount:u32 " NT_CLR1
	  " GenerationSize4:u64@2 TotalPromotedSize4:u64@2" },
	{ 5, "GCCreateSegment", "Address:u64 Size:u64 Type:u32 " NT_CLR1 },
	{ 6, "GCFreeSegment", "Address:u64 " NT_CLR1 },
	{ 7, "GCRestartEEBegin", NT_CLR1 },
	{ 8, "GCSuspendEEEnd", NT_CLR1 },
	{ 9, "GCSuspendEEBegin", "Reason:u16<1 Reason:u32@1 Count:u32@1 " NT_CLR1 },
	{ 10, "GCAllocationTick",
	  "AllocationAmount:u32 AllocationKind:u32 " NT_CLR1
	  " AllocationAmount64:u64@2 TypeID:ptr@2 TypeName:str@2 HeapIndex:u32@2 "
	  "Address:ptr@3 ObjectSize:u64@4" },
	{ 11, "GCCreateConcurrentThread", NT_CLR1 },
	{ 12, "GCTerminateConcurrentThread", NT_CLR1 },
	{ 13, "GCFinalizersEnd", "Count:u32 " NT_CLR1 },
	{ 14, "GCFinalizersBegin", NT_CLR1 },

	/* types and the heap walk */
	{ 15, "BulkType",
	  "Count:u32 " NT_CLR " Values:{TypeID:u64 ModuleID:u64 TypeNameID:u32 Flags:u32 "
	  "CorElementType:u8 Name:str TypeParameterCount:u32 "
	  "TypeParameters:u64[TypeParameterCount]}[Count]" },
	{ 16, "GCBulkRootEdge",
	  BULK "Values:{RootedNodeAddress:ptr GCRootKind:u8 GCRootFlag:u32 GCRootID:ptr}[Count]" },
	{ 17, "GCBulkRootConditionalWeakTableElementEdge",
	  BULK "Values:{GCKeyNodeID:ptr GCValueNodeID:ptr GCRootID:ptr}[Count]" },
	{ 18, "GCBulkNode", BULK "Values:{Address:ptr Size:u64 TypeID:u64 EdgeCount:u64}[Count]" },
	{ 19, "GCBulkEdge", BULK "Values:{Value:ptr ReferencingFieldID:u32}[Count]" },
	{ 20, "GCSampledObjectAllocationHigh", SAMPLED },
	{ 21, "GCBulkSurvivingObjectRanges", BULK "Values:{RangeBase:ptr RangeLength:u64}[Count]" },
	{ 22, "GCBulkMovedObjectRanges",
	  BULK "Values:{OldRangeBase:ptr NewRangeBase:ptr RangeLength:u64}[Count]" },
	{ 23, "GCGenerationRange",
	  "Generation:u8 RangeStart:ptr RangeUsedLength:u64 RangeReservedLength:u64 " NT_CLR },
	{ 25, "GCMarkStackRoots", MARK },
	{ 26, "GCMarkFinalizeQueueRoots", MARK },
	{ 27, "GCMarkHandles", MARK },
	{ 28, "GCMarkOlderGenerationRoots", MARK },
	{ 29, "FinalizeObject", "TypeID:ptr ObjectID:ptr " NT_CLR },
	{ 30, "SetGCHandle",
	  "HandleID:ptr ObjectID:ptr Kind:u32 Generation:u32 AppDomainID:u64 " NT_CLR },
	{ 31, "DestroyGCHandle", "HandleID:ptr " NT_CLR },
	{ 32, "GCSampledObjectAllocationLow", SAMPLED },
	{ 33, "PinObjectAtGCTime",
	  "HandleID:ptr ObjectID:ptr ObjectSize:u64 TypeName:str " NT_CLR },
	{ 35, "GCTriggered", "Reason:u32 " NT_CLR },
	/* Records of 44 bytes; some writers pad them to 48.  The same care for the next one. */
	{ 36, "GCBulkRootCCW",
	  "Count:u32 " NT_CLR " Values:{GCRootID:u64 ObjectID:u64 TypeID:u64 IUnknown:u64 "
	  "RefCount:u32 PeggedRefCount:u32 Flags:u32 -:padrest}[Count]" },
	{ 37, "GCBulkRCW",
	  "Count:u32 " NT_CLR " Values:{ObjectID:u64 TypeID:u64 IUnknown:u64 VTable:u64 "
	  "RefCount:u32 Flags:u32 -:padrest}[Count]" },
	{ 38, "GCBulkRootStaticVar",
	  "Count:u32 AppDomainID:u64 " NT_CLR
	  " Values:{GCRootID:u64 ObjectID:u64 TypeID:u64 Flags:u32 FieldName:str}[Count]" },
	{ 39, "GCDynamicEvent", "Name:str DataSize:u32 Data:bytes[DataSize] " NT_CLR },

	/* thread pool and threads */
	{ 40, "WorkerThreadCreate", WORKER0 },
	{ 41, "WorkerThreadTerminate", WORKER0 },
	{ 42, "WorkerThreadRetire", WORKER0 },
	{ 43, "WorkerThreadUnretire", WORKER0 },
	{ 44, "IOThreadCreate", IO },
	{ 45, "IOThreadTerminate", IO },
	{ 46, "IOThreadRetire", IO },
	{ 47, "IOThreadUnretire", IO },
	{ 48, "ThreadpoolSuspensionSuspendThread", SUSPEND },
	{ 49, "ThreadpoolSuspensionResumeThread", SUSPEND },
	{ 50, "ThreadPoolWorkerThreadStart", WORKER },
	{ 51, "ThreadPoolWorkerThreadStop", WORKER },
	{ 52, "ThreadPoolWorkerThreadRetirementStart", WORKER },
	{ 53, "ThreadPoolWorkerThreadRetirementStop", WORKER },
	{ 54, "ThreadPoolWorkerThreadAdjustmentSample", "Throughput:f64 " NT_CLR },
	{ 55, "ThreadPoolWorkerThreadAdjustmentAdjustment",
	  "AverageThroughput:f64 NewWorkerThreadCount:u32 Reason:u32 " NT_CLR },
	{ 56, "ThreadPoolWorkerThreadAdjustmentStats",
	  "Duration:f64 Throughput:f64 ThreadWave:f64 ThroughputWave:f64 "
	  "ThroughputErrorEstimate:f64 AverageThroughputErrorEstimate:f64 ThroughputRatio:f64 "
	  "Confidence:f64 NewControlSetting:f64 NewThreadWaveMagnitude:u16 " NT_CLR },
	{ 57, "ThreadPoolWorkerThreadWait", WORKER },
	{ 58, "YieldProcessorMeasurement", NT_CLR " NsPerYield:f64 EstablishedNsPerYield:f64" },
	{ 59, "ThreadPoolMinMaxThreads",
	  "MinWorkerThreads:u16 MaxWorkerThreads:u16 MinIOCompletionThreads:u16 "
	  "MaxIOCompletionThreads:u16 " NT_CLR },
	{ 60, "ThreadPoolWorkingThreadCount", "Count:u32 " NT_CLR },
	{ 61, "ThreadPoolEnqueue", "WorkID:ptr " NT_CLR },
	{ 62, "ThreadPoolDequeue", "WorkID:ptr " NT_CLR },
	{ 63, "ThreadPoolIOEnqueue",
	  "NativeOverlapped:ptr Overlapped:ptr MultiDequeues:b4 " NT_CLR },
	{ 64, "ThreadPoolIODequeue", "NativeOverlapped:ptr Overlapped:ptr " NT_CLR },
	{ 65, "ThreadPoolIOPack", "NativeOverlapped:ptr Overlapped:ptr " NT_CLR },
	{ 70, "ThreadCreating", "ID:ptr " NT_CLR },
	{ 71, "ThreadRunning", "ID:ptr " NT_CLR },

	/* methods, types, exceptions, locks, threads */
	{ 72, "MethodDetails",
	  "MethodID:u64 TypeID:u64 MethodToken:u32 TypeParameterCount:u32 LoaderModuleID:u64 "
	  "TypeParameters:u64[TypeParameterCount]" },
	{ 73, "TypeLoadStart", "TypeLoadStartID:u32 " NT_CLR },
	{ 74, "TypeLoadStop",
	  "TypeLoadStartID:u32 " NT_CLR " LoadLevel:u16 TypeID:u64 TypeName:str" },
	{ 80, "ExceptionThrown",
	  "ExceptionType:str@1 ExceptionMessage:str@1 ExceptionEIP:ptr@1 ExceptionHRESULT:u32@1 "
	  "ExceptionFlags:u16@1 " NT_CLR1 },
	{ 81, "ContentionStart",
	  "ContentionFlags:u8 " NT_CLR
	  " LockID:ptr@2 AssociatedObjectID:ptr@2 LockOwnerThreadID:u64@2" },
	{ 82, "CLRStackWalk",
	  NT_CLR " Reserved1:u8 Reserved2:u8 FrameCount:u32 Stack:ptr[FrameCount]" },
	{ 83, "AppDomainMemAllocated", "AppDomainID:u64 Allocated:u64 " NT_CLR },
	{ 84, "AppDomainMemSurvived", "AppDomainID:u64 Survived:u64 ProcessSurvived:u64 " NT_CLR },
	{ 85, "ThreadCreated", NT_THREAD },
	{ 86, "ThreadTerminated", "ManagedThreadID:u64 AppDomainID:u64 " NT_CLR },
	{ 87, "ThreadDomainEnter", "ManagedThreadID:u64 AppDomainID:u64 " NT_CLR },
	{ 88, "ILStubGenerated",
	  NT_CLR " ModuleID:u64 StubMethodID:u64 StubFlags:u32 ManagedInteropMethodToken:u32 "
		 "ManagedInteropMethodNamespace:str ManagedInteropMethodName:str "
		 "ManagedInteropMethodSignature:str NativeMethodSignature:str "
		 "StubMethodSignature:str StubMethodILCode:str" },
	{ 89, "ILStubCacheHit",
	  NT_CLR " ModuleID:u64 StubMethodID:u64 ManagedInteropMethodToken:u32 "
		 "ManagedInteropMethodNamespace:str ManagedInteropMethodName:str "
		 "ManagedInteropMethodSignature:str" },
	{ 90, "ContentionLockCreated", "LockID:ptr AssociatedObjectID:ptr " NT_CLR },
	{ 91, "ContentionStop", "ContentionFlags:u8 " NT_CLR " DurationNs:f64@1" },
	{ 141, "MethodLoad", NT_METHOD_LOAD },
	{ 142, "MethodUnload", NT_METHOD_LOAD },
	{ 143, "MethodLoadVerbose", NT_METHOD_LOAD_VERBOSE },
	{ 144, "MethodUnloadVerbose", NT_METHOD_LOAD_VERBOSE },
	{ 145, "MethodJittingStarted",
	  "MethodID:u64 ModuleID:u64 MethodToken:u32 MethodILSize:u32 " NT_METHOD_NAMES NT_CLR1 },
	{ 146, "MethodJitMemoryAllocatedForCode",
	  "MethodID:u64 ModuleID:u64 JitHotCodeRequestSize:u64 JitRODataRequestSize:u64 "
	  "AllocatedSizeForJitCode:u64 JitAllocFlag:u32 " NT_CLR },

	/* loader */
	{ 151, "DomainModuleLoad", NT_DOMAIN_MODULE },
	{ 152, "ModuleLoad", NT_MODULE },
	{ 153, "ModuleUnload", NT_MODULE },
	{ 154, "AssemblyLoad", NT_ASSEMBLY },
	{ 155, "AssemblyUnload", NT_ASSEMBLY },
	{ 156, "AppDomainLoad", NT_APP_DOMAIN },
	{ 157, "AppDomainUnload", NT_APP_DOMAIN },
	{ 158, "ModuleRangeLoad", NT_MODULE_RANGE },
	{ 159, "R2RGetEntryPoint", "MethodID:u64 " NT_METHOD_NAMES "EntryPoint:u64 " NT_CLR },
	{ 160, "R2RGetEntryPointStart", "MethodID:u64 " NT_CLR },
	{ 185, "MethodJitInliningSucceeded", INLINING NT_CLR },
	{ 186, "MethodJitInliningFailedAnsi", INLINING "FailAlways:b4 FailReason:ansi " NT_CLR },
	{ 187, "RuntimeInformationStart", NT_RUNTIME_INFORMATION },
	{ 188, "MethodJitTailCallSucceeded", TAIL_CALL "TailCallType:u32 " NT_CLR },
	{ 189, "MethodJitTailCallFailedAnsi", TAIL_CALL "FailReason:ansi " NT_CLR },
	{ 190, "MethodILToNativeMap", NT_IL_MAP },
	{ 191, "MethodJitTailCallFailed", TAIL_CALL "FailReason:str " NT_CLR },
	{ 192, "MethodJitInliningFailed", INLINING "FailAlways:b4 FailReason:str " NT_CLR },

	/* more of the garbage collector */
	{ 200, "IncreaseMemoryPressure", "BytesAllocated:u64 " NT_CLR },
	{ 201, "DecreaseMemoryPressure", "BytesFreed:u64 " NT_CLR },
	{ 202, "GCMarkWithType", "HeapNum:u32 " NT_CLR " Type:u32 Promoted:u64" },
	{ 203, "GCJoin", "Heap:u32 JoinTime:u32 JoinType:u32 " NT_CLR " JoinID:u32@2" },
	/* Versions before 3 are those of .NET Framework, laid out differently. */
	{ 204, "GCPerHeapHistory",
	  "@3 " NT_CLR " FreeListAllocated:ptr FreeListRejected:ptr EndOfSegAllocated:ptr "
	  "CondemnedAllocated:ptr PinnedAllocated:ptr PinnedAllocatedAdvance:ptr "
	  "RunningFreeListEfficiency:u32 CondemnReasons0:u32 CondemnReasons1:u32 "
	  "CompactMechanisms:u32 ExpandMechanisms:u32 HeapIndex:u32 ExtraGen0Commit:ptr Count:u32 "
	  "Values:{SizeBefore:ptr FreeListBefore:ptr FreeObjBefore:ptr SizeAfter:ptr "
	  "FreeListAfter:ptr FreeObjAfter:ptr In:ptr PinnedSurv:ptr NonePinnedSurv:ptr "
	  "NewAllocation:ptr}[Count]" },
	{ 205, "GCGlobalHeapHistory",
	  "FinalYoungestDesired:u64 NumHeaps:i32 CondemnedGeneration:u32 Gen0ReductionCount:u32 "
	  "Reason:u32 GlobalMechanisms:u32 " NT_CLR1 " PauseMode:u32@2 MemoryPressure:u32@2 "
	  "CondemnReasons0:u32@3 CondemnReasons1:u32@3 Count:u32@4 Times:u32[Count]@4" },
	{ 206, "GenAwareBegin", "Count:u32 " NT_CLR },
	{ 207, "GenAwareEnd", "Count:u32 " NT_CLR },
	{ 208, "GCLOHCompact",
	  NT_CLR " Count:u16 Values:{TimePlan:u32 TimeCompact:u32 TimeRelocate:u32 -:padptr "
		 "TotalRefs:ptr ZeroRefs:ptr}[Count]" },
	{ 209, "GCFitBucketInfo",
	  NT_CLR " BucketKind:u16 TotalSize:u64 Count:u16 "
		 "Values:{Index:u16 -:pad2 Count:u32 Size:ptr}[Count]" },
	{ 240, "DebugIPCEventStart", "" },
	{ 241, "DebugIPCEventEnd", "" },
	{ 242, "DebugExceptionProcessingStart", "" },
	{ 243, "DebugExceptionProcessingEnd", "" },
	{ 250, "ExceptionCatchStart", HANDLING },
	{ 251, "ExceptionCatchStop", "" },
	{ 252, "ExceptionFinallyStart", HANDLING },
	{ 253, "ExceptionFinallyStop", "" },
	{ 254, "ExceptionFilterStart", HANDLING },
	{ 255, "ExceptionFilterStop", "" },
	{ 256, "ExceptionThrownStop", "" },
	{ 260, "CodeSymbols", NT_CODE_SYMBOLS },
	{ 270, "EventSource", "EventID:i32 EventName:str EventSourceName:str Payload:str" },
	{ 280, "TieredCompilationSettings", NT_TIERED_SETTINGS },
	{ 281, "TieredCompilationPause", NT_CLR },
	{ 282, "TieredCompilationResume", NT_CLR " NewMethodCount:u32" },
	{ 283, "TieredCompilationBackgroundJitStart", NT_CLR " PendingMethodCount:u32" },
	{ 284, "TieredCompilationBackgroundJitStop",
	  NT_CLR " PendingMethodCount:u32 JittedMethodCount:u32" },
	{ 290, "AssemblyLoadStart", ASSEMBLY_LOAD },
	{ 291, "AssemblyLoadStop", ASSEMBLY_LOAD " Success:b4" RESULT " Cached:b4" },
	{ 292, "ResolutionAttempted",
	  NT_CLR " AssemblyName:str Stage:u16 AssemblyLoadContext:str Result:u16" RESULT
		 " ErrorMessage:str" },
	{ 293, "AssemblyLoadContextResolvingHandlerInvoked",
	  NT_CLR " AssemblyName:str HandlerName:str AssemblyLoadContext:str" RESULT },
	{ 294, "AppDomainAssemblyResolveHandlerInvoked",
	  NT_CLR " AssemblyName:str HandlerName:str" RESULT },
	{ 295, "AssemblyLoadFromResolveHandlerInvoked",
	  NT_CLR " AssemblyName:str IsTrackedLoad:b4 RequestingAssemblyPath:str "
		 "ComputedRequestedAssemblyPath:str" },
	{ 296, "KnownPathProbed", NT_CLR " FilePath:str Source:u16 Result:i32" },
	{ 297, "JitInstrumentationData",
	  NT_CLR " MethodFlags:u32 DataSize:u32 MethodID:u64 Data:bytes[DataSize]" },
	{ 298, "JitInstrumentationDataVerbose",
	  NT_CLR " MethodFlags:u32 DataSize:u32 MethodID:u64 ModuleID:u64 "
		 "MethodToken:u32 " NT_METHOD_NAMES "Data:bytes[DataSize]" },
	{ 299, "ProfilerMessage", NT_CLR " Message:str" },
	{ 300, "ExecutionCheckpoint", NT_CHECKPOINT },
	{ 301, "WaitHandleWaitStart", "WaitSource:u8 AssociatedObjectID:ptr " NT_CLR },
	{ 302, "WaitHandleWaitStop", NT_CLR },
	{ 303, "AllocationSampled",
	  "AllocationKind:u32 " NT_CLR " TypeID:ptr TypeName:str Address:ptr ObjectSize:u64 "
	  "SampledByteOffset:u64" },
};

const struct nt_table_rows nt_table_runtime = ROWS(runtime);
