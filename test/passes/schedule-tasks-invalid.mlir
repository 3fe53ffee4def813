// RUN: not llmc-opt %s --llmc-schedule-tasks=target=x86-64-v9 2>&1 | FileCheck %s

// CHECK: error: unknown CPU target 'x86-64-v9' (known = host x86-64-v3 x86-64-v4-vnni x86-64-v4 x86-64-v4-amx)
module {
}
