// Carries out the steps of a plan on the objects of a host in memory, as a Docker Engine does.
import type { Step } from '#control-plane/engines/convergence-plan.ts'
import { memberName } from '#control-plane/engines/member-name.ts'
import { networkName, secretsVolumeName, volumeName } from '#control-plane/stacks/object-names.ts'
import type { Service, Stack } from '#control-plane/stacks/stack.ts'
import { container, installation, type Changeable } from './made-stack.ts'

/** Carries out one step. @throws Error for an object that does not exist */
export function applyStep(stack: Stack, host: Changeable, step: Step): void {
  const labels = { installation, stack: stack.id }
  const service = (name: string): Service => existing(stack.services, name)
  const network = (name: string) => existing(host.networks, networkName(stack.id, name))
  switch (step.do) {
    case 'create-network': {
      const { subnet, internal } = existing(stack.networks, step.network)
      const name = networkName(stack.id, step.network)
      host.networks.push({ id: step.network, name, labels, subnet, internal, members: [], addresses: {} })
      return
    }
    case 'replace-network': {
      const { name } = network(step.network)
      host.networks = host.networks.filter((one) => one.name !== name)
      for (const one of host.containers) one.networks = withoutKey(one.networks, name)
      return
    }
    case 'attach-container': {
      const found = network(step.network)
      found.members = [...found.members, step.attached.container]
      return
    }
    case 'detach-container': {
      const found = network(step.network)
      found.members = found.members.filter((member) => member !== step.attached.container)
      return
    }
    case 'create-volume': {
      const name = volumeName(stack.id, step.volume)
      host.unlabelledVolumes = host.unlabelledVolumes.filter((one) => one !== name)
      host.volumes.push({ name, labels })
      return
    }
    case 'remove-volume':
      host.volumes = host.volumes.filter(({ name }) => name !== step.volume)
      return
    case 'create-container': {
      const created = service(step.service)
      const secrets = secretsVolumeName(stack.id, created)
      host.volumes = host.volumes.filter(({ name }) => name !== secrets)
      host.volumes.push({ name: secrets, labels: { ...labels, service: created.name } })
      host.containers.push(container({ ...stack, state: 'running' }, created))
      return
    }
    case 'take-over':
      host.containers = host.containers.filter(({ name }) => !step.from.includes(name))
      return
    case 'remove-container':
      host.containers = host.containers.filter(({ name }) => name !== step.container)
      return
    case 'start-container':
    case 'unpause-container':
      existing(host.containers, step.container).state = 'running'
      existing(host.containers, step.container).health = 'healthy'
      return
    case 'stop-container':
      existing(host.containers, step.container).state = 'exited'
      return
    case 'update-resources': {
      const found = existing(host.containers, step.container)
      const { restartPolicy = found.restartPolicy, ...resources } = step.changes
      Object.assign(found, { restartPolicy, resources: { ...found.resources, ...resources } })
      return
    }
    case 'connect-container': {
      const found = existing(host.containers, step.container)
      const name = network(step.network).name
      const attached = container(stack, service(step.service)).networks[name]
      if (attached !== undefined) found.networks = { ...found.networks, [name]: attached }
      return
    }
    case 'disconnect-container': {
      const found = existing(host.containers, step.container)
      found.networks = withoutKey(found.networks, step.network)
      for (const left of host.networks.filter(({ name }) => name === step.network))
        left.addresses = withoutKey(left.addresses, memberName({ container: found.name }))
      return
    }
  }
}

function existing<Named extends { name: string }>(all: readonly Named[], name: string): Named {
  const found = all.find((one) => one.name === name)
  if (found === undefined) throw new Error(`There is no ${name}.`)
  return found
}

function withoutKey<Value>(record: Readonly<Record<string, Value>>, name: string): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name))
}
