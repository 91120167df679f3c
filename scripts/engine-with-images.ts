// The engine of a run of tests or benchmarks, with our images on it: TENANTRY_DOCKER_HOST tells the run's processes of it.
import { buildImages } from '../images/build.ts'
import { ensureEngine, type Engine } from './engine.ts'

/** @throws Error that says what to do when there is none */
export async function openEngineWithImages(report: (line: string) => void): Promise<Engine> {
  const engine = await ensureEngine()
  process.env['TENANTRY_DOCKER_HOST'] = engine.host
  for (const { name, built } of await buildImages(engine.docker)) if (built) report(`built the image ${name}`)
  return engine
}
