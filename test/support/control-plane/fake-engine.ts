// An engine in memory that converges a stack at once. Tests change its objects, make it unreachable, and write its logs.
import { volumeName } from '#control-plane/stacks/object-names.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import {
  type ContainerStats,
  type ExecResult,
  type HostImage,
  type HostInfo,
  type LogLine,
  type LogOptions,
  type ObservedHost,
} from '#control-plane/engines/container-host.ts'
import { planSteps } from '#control-plane/engines/convergence-plan.ts'
import type { Engine, RemovedParts } from '#control-plane/engines/engine.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { planRepair, type RepairTarget } from '#control-plane/engines/repair-plan.ts'
import { keyHash } from '#control-plane/keys/key-text.ts'
import { applyStep } from './apply-step.ts'
import { installation, made, type Changeable } from './made-stack.ts'

export class FakeEngine implements Engine {
  readonly installation = installation
  readonly name = 'docker'
  hostIds: readonly string[] = []
  /** The primaries of clusters in a region with several hosts, by tenant; absent: `postgres-1`. */
  readonly primaries = new Map<string, string>()
  /** False makes every call fail with ENGINE_UNREACHABLE. */
  isReachable = true
  /** `converge` waits until this promise resolves. */
  gate: Promise<void> = Promise.resolve()
  host: Pick<HostInfo, 'memoryBytes' | 'cpus' | 'disk'> = { memoryBytes: 8 * 2 ** 30, cpus: 4, disk: undefined }
  readonly stacks = new Map<string, Changeable>()
  /** Log lines; all services have the same ones. */
  readonly lines: LogLine[] = []
  /** Number of logs that callers follow now. */
  followed = 0
  #wakers = new Set<() => void>()

  async info() {
    this.#check()
    return { name: 'stand-in', apiVersion: '1.41', warnings: [], ...this.host }
  }

  isDown(): boolean {
    return false
  }

  async image(reference: string): Promise<HostImage> {
    this.#check()
    return {
      id: `sha256:${keyHash(reference)}`,
      component: reference.includes('runtime') ? 'runtime' : 'postgres',
    }
  }

  async observe(stackId: string | undefined): Promise<ObservedHost> {
    this.#check()
    const found = [...this.stacks].filter(([id]) => stackId === undefined || id === stackId).map(([, stack]) => stack)
    return structuredClone({
      containers: found.flatMap(({ containers }) => containers),
      networks: found.flatMap(({ networks }) => networks),
      volumes: found.flatMap(({ volumes }) => volumes),
      unlabelledVolumes: found.flatMap(({ unlabelledVolumes }) => unlabelledVolumes),
    })
  }

  async converge(stack: Stack): Promise<void> {
    await this.gate
    this.#check()
    if (planSteps(stack, await this.observe(stack.id)).length > 0)
      this.stacks.set(stack.id, made(stack, this.stacks.get(stack.id)))
  }

  async repair(stack: Stack, targets: readonly RepairTarget[]): Promise<void> {
    this.#check()
    const host = this.stacks.get(stack.id)
    if (host === undefined) throw new Error(`The fake engine has no stack ${stack.id}.`)
    for (;;) {
      const steps = planRepair(stack, await this.observe(stack.id), targets)
      if (steps.length === 0) return
      for (const step of steps) applyStep(stack, host, step)
    }
  }

  async remove(stackId: string): Promise<void> {
    this.#check()
    this.stacks.delete(stackId)
  }

  async removeServices(stackId: string, { services, volumes }: RemovedParts): Promise<readonly string[]> {
    this.#check()
    const host = this.stacks.get(stackId)
    if (host === undefined) return []
    const names = volumes.map((volume) => volumeName(stackId, volume))
    this.stacks.set(stackId, {
      ...host,
      containers: host.containers.filter(({ labels }) => !services.includes(labels.service ?? '')),
      volumes: host.volumes.filter(({ name }) => !names.includes(name)),
    })
    return []
  }

  /** Runs the commands of `exec`. */
  run: (service: string, command: readonly string[]) => Promise<ExecResult> = () =>
    Promise.reject(new Error('The fake engine runs no commands.'))

  exec(_stackId: string, service: string, command: readonly string[]): Promise<ExecResult> {
    this.#check()
    return this.run(service, command)
  }

  execStream(): AsyncIterable<never> {
    throw new Error('The fake engine runs no commands.')
  }

  async *logs(
    _stackId: string,
    _service: string,
    { follow, tail, since }: LogOptions,
    signal: AbortSignal,
  ): AsyncGenerator<LogLine, undefined> {
    this.#check()
    const first = this.lines.findIndex(({ at }) => since === undefined || at >= since)
    let next = Math.max(first === -1 ? this.lines.length : first, this.lines.length - tail)
    this.followed++
    try {
      for (;;) {
        while (next < this.lines.length) {
          const line = this.lines[next++]
          if (line !== undefined) yield line
        }
        if (!follow || signal.aborted) return
        await new Promise<void>((resolve) => {
          this.#wakers.add(resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
        if (!this.isReachable) throw new EngineError('ENGINE_UNREACHABLE', 'the engine cannot be reached')
      }
    } finally {
      this.followed--
    }
  }

  write(at: string, text: string): void {
    this.lines.push({ at, stream: 'stdout', text })
    this.stir()
  }

  /** Wakes all callers that follow a log, which then read it again. */
  stir(): void {
    for (const wake of this.#wakers) wake()
    this.#wakers.clear()
  }

  async stats(stackId: string): Promise<Record<string, ContainerStats>> {
    this.#check()
    const running = this.stacks.get(stackId)?.containers.filter(({ state }) => state === 'running') ?? []
    return Object.fromEntries(
      running.map(({ labels }) => [labels.service ?? '', { cpuNanoseconds: 1_500_000_000, memoryBytes: 50_000_000 }]),
    )
  }

  async volumeBytes(stackId: string) {
    this.#check()
    return this.stacks.has(stackId) ? { data: 40_000_000, files: 4096 } : {}
  }

  async *events(signal: AbortSignal): AsyncGenerator<never, undefined> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    yield* []
  }

  #check(): void {
    if (!this.isReachable) throw new EngineError('ENGINE_UNREACHABLE', 'the engine cannot be reached')
  }
}
