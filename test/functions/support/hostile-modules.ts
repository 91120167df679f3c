// Modules that attack the runtime which deploys, compiles or runs them, with the expected end of each.
import type { Hostile } from './hostile-module-parts.ts'
import { hostileWhenRun } from './hostile-when-run.ts'
import { hostileWhenDeployed } from './hostile-when-deployed.ts'

export const hostile: readonly Hostile[] = [...hostileWhenDeployed, ...hostileWhenRun]
