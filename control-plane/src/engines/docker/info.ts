// Reads the description of an Engine, with warnings for the operator.
import type Dockerode from 'dockerode'
import type { HostInfo } from '../index.ts'
import { diskOf } from './data-root.ts'
import type { EngineApi } from './engine-api.ts'

interface Info {
  Name: string
  MemTotal: number
  NCPU: number
  CgroupVersion?: string
  SecurityOptions: string[] | null
  Warnings: string[] | null
  DockerRootDir?: string
}

/** Reads the description. @param isLocal whether the Engine is on this host @throws EngineError `ENGINE_TOO_OLD` */
export async function info(api: EngineApi, isLocal: boolean, signal: AbortSignal): Promise<HostInfo> {
  const found = (await api.request(
    { doing: "read the host's description", method: 'GET', path: '/info' },
    signal,
  )) as Info
  const { ApiVersion } = (await api.request(
    { doing: 'read the version', method: 'GET', path: '/version' },
    signal,
  )) as Dockerode.DockerVersion
  return {
    name: found.Name,
    apiVersion: ApiVersion,
    memoryBytes: found.MemTotal,
    cpus: found.NCPU,
    disk: isLocal ? await diskOf(found.DockerRootDir) : undefined,
    warnings: warnings(found),
  }
}

function warnings({ CgroupVersion: cgroup, SecurityOptions: security, Warnings: own }: Info): string[] {
  const found = (own ?? []).map((warning) => warning.replace(/^WARNING: /, ''))
  if (cgroup === '1')
    found.push('cgroup v1: the kernel counts memory less exactly than with v2, and Docker phases out its support')
  if (!(security ?? []).some((option) => option.startsWith('name=seccomp')))
    found.push('no seccomp: containers may use every system call')
  return found
}
