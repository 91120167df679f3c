// Modules that are made to harm whoever takes, compiles or runs them, with what must come of each.
import type { Hostile } from './hostile-module-parts.ts'
import { hostileWhenRun } from './hostile-when-run.ts'
import { hostileWhenTaken } from './hostile-when-taken.ts'

export const hostile: readonly Hostile[] = [...hostileWhenTaken, ...hostileWhenRun]
