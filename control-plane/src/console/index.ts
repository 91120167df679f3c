// The exports of `console/` that other modules may import.
export { addConsoleFiles, type ConsoleFilesDeps } from './routes-files.ts'
