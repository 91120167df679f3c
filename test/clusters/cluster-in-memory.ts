// A cluster in memory: containers that follow the steps of the real convergence plan, and a Patroni that elects and replicates.
import { planSteps, type Step } from '#control-plane/engines/convergence-plan.ts'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { planCluster, servicesToChange, type ClusterStep } from '#control-plane/clusters/plan-cluster.ts'
import { clusterMembers, clusterRouters } from '#control-plane/stacks/cluster-services.ts'
import { containerName, secretsVolumeName } from '#control-plane/stacks/object-names.ts'
import { stackFor, type StackInput } from '#control-plane/stacks/stack-for.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { container, made } from '#test/support/control-plane/made-stack.ts'
import { stateOf, type ReportedMember } from './support.ts'

const size = { memoryBytes: 512 * 2 ** 20, cpuMillis: 500, pids: 256 }
const tenant: StackInput = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  running: true,
  hasHome: true,
  resources: { postgres: size, runtime: size },
  restarts: 0,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
  subnet: '10.1.1.0/28',
}
const etcd = { authority: 'a', certificate: 'c', privateKey: 'k', seed: 's'.repeat(43) }
const environment = {
  gateways: [{ container: 'the-gateway' }],
  internalToken: 'x'.repeat(32),
  cluster: { etcd, etcdContainers: ['e1', 'e2', 'e3'].map((container) => ({ container })) },
}

/** Returns the stack of a cluster. */
export const clusterOf = (change: Partial<StackInput> = {}): Stack => stackFor({ ...tenant, ...change }, environment)

/** Larger limits of each member. */
export const larger = { postgres: { ...size, memoryBytes: 2 * size.memoryBytes }, runtime: size }

export class ClusterInMemory {
  readonly stack: Stack
  readonly #before: Stack
  readonly host
  primary = 'postgres-1'
  /** The changes of running services, in order: `stop NAME`, `resize NAME`, `switch over to NAME`. */
  readonly log: string[] = []
  /** Breaches of what must hold all the while. */
  readonly breaches: string[] = []
  /** Members whose Postgres does not start with the new specification. */
  readonly failing = new Set<string>()
  readonly #following = new Set<string>(clusterMembers)

  constructor(before: Stack, after: Stack) {
    this.#before = before
    this.stack = after
    this.host = made(before)
  }

  /** Lets time pass: Postgres starts, and an election takes place. */
  tick(): void {
    for (const name of clusterMembers) {
      if (this.#isRunning(name) && !this.failing.has(name)) this.#following.add(name)
      else this.#following.delete(name)
    }
    if (this.#following.has(this.primary)) return
    // Only a member that confirmed commits can be elected.
    const [elected] = this.#following
    if (elected !== undefined) this.primary = elected
  }

  /** Returns the report of Patroni; undefined if no member runs. */
  state(): ClusterState | undefined {
    if (!clusterMembers.some((name) => this.#isRunning(name))) return undefined
    const change: Record<string, Partial<ReportedMember> | null> = {}
    for (const name of clusterMembers)
      if (!this.#isRunning(name)) change[name] = null
      else if (!this.#following.has(name)) change[name] = { state: 'starting' }
    return stateOf(this.primary, change)
  }

  plan(): ClusterStep {
    const readyRouters = new Set(clusterRouters.filter((router) => this.#isRunning(router)))
    return planCluster(this.stack, { host: this.host, state: this.state(), readyRouters })
  }

  isDone(): boolean {
    return servicesToChange(this.stack, this.host).length === 0 && planSteps(this.stack, this.host).length === 0
  }

  /** Carries out a step of the plan. @param count maximum number of the engine's steps, before an interruption */
  take(step: ClusterStep, count = Infinity): void {
    if (step.do === 'wait') return
    if (step.do === 'switch-over') {
      if (step.from !== this.primary || !this.#following.has(step.to)) this.breaches.push(`switched over to ${step.to}`)
      this.primary = step.to
      this.log.push(`switch over to ${step.to}`)
      return
    }
    let taken = 0
    for (let round = 0; taken < count; round++) {
      const steps = planSteps(this.stack, this.host, step.held)
      if (steps.length === 0) return
      if (round > 60) throw new Error(`The steps do not end: ${JSON.stringify(steps)}`)
      for (const one of steps) {
        if (taken++ >= count) return
        this.#apply(one)
      }
    }
  }

  /** Ends a container by itself. */
  crash(name: string): void {
    for (const one of this.#containersOf(name)) one.state = 'exited'
    if (this.#following.delete(name) && name === this.primary) this.tick()
  }

  /** Disconnects all containers from their network. */
  loseNetwork(): void {
    this.host.containers = this.host.containers.map((one) => ({ ...one, networks: {} }))
    this.#following.clear()
    this.primary = 'none'
  }

  #apply(step: Step): void {
    switch (step.do) {
      case 'remove-container': {
        const name = this.#serviceOf(step.container)
        const wasRunning = this.host.containers.some(
          ({ name: one, state }) => one === step.container && state === 'running',
        )
        this.host.containers = this.host.containers.filter((one) => one.name !== step.container)
        if (wasRunning) this.#stopped(name)
        return
      }
      case 'create-container': {
        const service = this.stack.services.find(({ name }) => name === step.service)
        if (service === undefined) throw new Error(`no service ${step.service}`)
        const labels = { installation: 'stand-in', stack: this.stack.id, service: service.name }
        this.host.volumes.push({ name: secretsVolumeName(this.stack.id, service), labels })
        this.host.containers.push(container(this.stack, service))
        return
      }
      case 'start-container':
        for (const one of this.host.containers) if (one.name === step.container) one.state = 'running'
        return
      case 'update-resources': {
        const index = this.host.containers.findIndex((one) => one.name === step.container)
        const service = this.stack.services.find(({ name }) => name === step.service)
        const before = this.host.containers[index]
        if (service === undefined || before === undefined) throw new Error(`no ${step.container}`)
        this.host.containers[index] = { ...before, resources: service.resources }
        this.log.push(`resize ${step.service}`)
        return
      }
      case 'take-over': {
        const former = this.host.containers.filter(({ name }) => step.from.includes(name))
        this.host.containers = this.host.containers.filter((one) => !former.includes(one))
        if (former.some(({ state }) => state === 'running')) this.log.push(`stop ${step.service}`)
        return
      }
      case 'remove-volume':
        this.host.volumes = this.host.volumes.filter(({ name }) => name !== step.volume)
        return
      case 'connect-container': {
        const service = this.stack.services.find(({ name }) => name === step.service)
        if (service === undefined) throw new Error(`no service ${step.service}`)
        const { networks } = container(this.stack, service)
        this.host.containers = this.host.containers.map((one) =>
          one.name === step.container ? { ...one, networks } : one,
        )
        return
      }
      case 'create-volume':
      case 'create-network':
      case 'replace-network':
      case 'attach-container':
      case 'unpause-container':
      case 'disconnect-container':
      case 'stop-container':
        throw new Error(`unexpected: ${JSON.stringify(step)}`)
    }
  }

  #stopped(name: string): void {
    this.log.push(`stop ${name}`)
    this.#following.delete(name)
    if (clusterRouters.some((router) => router === name) && !clusterRouters.some((router) => this.#isRunning(router)))
      this.breaches.push(`no router runs after the stop of ${name}`)
    if (!clusterMembers.some((member) => member === name)) return
    const confirming = [...this.#following].filter((member) => member !== this.primary)
    if (name === this.primary) this.breaches.push(`the primary ${name} was stopped`)
    else if (confirming.length === 0 && this.#following.has(this.primary))
      this.breaches.push(`no replica confirms commits after the stop of ${name}`)
  }

  #containersOf(service: string) {
    return this.host.containers.filter(({ labels }) => labels.service === service)
  }

  #isRunning(service: string): boolean {
    return this.#containersOf(service).some(({ state }) => state === 'running')
  }

  #serviceOf(containerOnHost: string): string {
    const all = [...this.stack.services, ...this.#before.services]
    const found = all.find(
      (service) =>
        containerName(this.stack.id, service) === containerOnHost ||
        this.host.containers.some(({ name, labels }) => name === containerOnHost && labels.service === service.name),
    )
    if (found === undefined) throw new Error(`no service of ${containerOnHost}`)
    return found.name
  }
}
