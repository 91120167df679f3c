// The real ContainerHost: one Docker Engine, called through dockerode.
import { type ContainerHost, componentLabel } from '../index.ts'
import {
  createContainer,
  removeContainer,
  startContainer,
  stopContainer,
  unpauseContainer,
  updateResources,
} from './containers.ts'
import { connectDocker, type DockerAddress } from './docker-connection.ts'
import { engineApi, segment } from './engine-api.ts'
import { statusOf } from './errors.ts'
import { events } from './events.ts'
import { exec, execStream } from './exec.ts'
import { info } from './info.ts'
import { logs } from './logs.ts'
import { connect, createNetwork, disconnect, emptyNetwork, removeNetwork } from './networks.ts'
import { observe } from './observe.ts'
import { stats } from './stats.ts'
import { addFiles, writeFiles } from './volume-files.ts'
import { volumeMeter } from './volume-meter.ts'
import { createVolume, removeUnlabelledVolume, removeVolume } from './volumes.ts'

export interface DockerHost extends ContainerHost {
  /** Returns when the Engine has responded. @throws EngineError ENGINE_UNREACHABLE after two seconds */
  ping(signal: AbortSignal): Promise<void>
  /** Disconnects all containers of this host from a network. An absent network is not an error. */
  disconnectAll: ContainerHost['removeNetwork']
  /** Ends idle connections. */
  close(): void
}

const pingSeconds = 2

interface FoundImage {
  Id: string
  Config?: { Labels?: Readonly<Record<string, string>> | null } | null
}

/**
 * Creates a host and sends nothing yet. @throws RangeError for an invalid address; the file system's errors for
 * certificates
 */
export function dockerHost(address: DockerAddress): DockerHost {
  const { docker, close } = connectDocker(address)
  const closed = new AbortController()
  const api = engineApi(docker)
  const meter = volumeMeter(api, closed.signal)
  return {
    async ping(signal) {
      await api
        .open({ doing: 'reach the host', method: 'GET', path: '/_ping', seconds: pingSeconds }, signal)
        .then((body) => body.resume())
    },
    disconnectAll: (name, owner, signal) => emptyNetwork(api, name, owner, signal),
    info: (signal) => info(api, address.host.startsWith('unix://'), signal),
    observe: (owned, signal) => observe(api, owned, signal),
    async image(reference, signal) {
      try {
        const found = await api.request(
          { doing: `find image ${reference}`, method: 'GET', path: `/images/${segment(reference)}/json` },
          signal,
        )
        const { Id: id, Config: config } = found as FoundImage
        return { id, component: config?.Labels?.[componentLabel] }
      } catch (error) {
        if (statusOf(error) === 404) return undefined
        throw error
      }
    },
    createNetwork: (spec, signal) => createNetwork(api, spec, signal),
    createVolume: (spec, signal) => createVolume(api, meter, spec, signal),
    createContainer: (spec, signal) => createContainer(api, spec, signal),
    startContainer: (name, signal) => startContainer(api, name, signal),
    unpauseContainer: (name, signal) => unpauseContainer(api, name, signal),
    stopContainer: (name, seconds, signal) => stopContainer(api, name, seconds, signal),
    updateResources: (name, changes, signal) => updateResources(api, name, changes, signal),
    connect: (network, container, aliases, address, signal) =>
      connect(api, network, container, aliases, address, signal),
    disconnect: (network, container, signal) =>
      disconnect(api, `disconnect ${container} from network ${network}`, network, container, signal),
    writeFiles: (volume, image, user, files, labels, signal) =>
      writeFiles(api, meter, volume, image, user, files, labels, signal),
    addFiles: (volume, image, user, files, labels, signal) => addFiles(api, volume, image, user, files, labels, signal),
    removeContainer: (name, owner, signal) => removeContainer(api, name, owner, signal),
    removeNetwork: (name, owner, signal) => removeNetwork(api, name, owner, signal),
    removeVolume: (name, owner, signal) => removeVolume(api, name, owner, signal),
    removeUnlabelledVolume: (name, signal) => removeUnlabelledVolume(api, meter, name, signal),
    exec: (container, command, options) => exec(api, container, command, options),
    execStream: (container, command, options) => execStream(api, container, command, options),
    logs: (container, options, signal) => logs(api, container, options, signal),
    stats: (container, signal) => stats(api, container, signal),
    volumeBytes: (owned, signal) => meter.bytes(owned, signal),
    events: (owned, signal) => events(api, owned, signal),
    close() {
      closed.abort()
      close()
    },
  }
}
