/** The kit for a plugin's tests: a panel in memory with fakes for every door, faults on demand, and the real boundary. Works with any test runner. */
export type { Who } from './actors.ts';
export type { TestAnswer } from './answer.ts';
export type { PanelRoute, TestApi } from './api.ts';
export type { AskOptions, Body, TestClient } from './client.ts';
export type { Door, FaultOptions, Faults } from './faults.ts';
export type { AuditRecord } from './front.ts';
export { PluginFailure, type Boundary, type StopReport, type TestTiming } from './generation.ts';
export type { TestHooks, TestTapFailure } from './hooks.ts';
export { createTestHost, LeakError, type TestHost, type TestHostOptions } from './host.ts';
export { readTestPackage, type TestManifest, type TestPackage } from './manifest.ts';
export type { TestNetwork } from './network.ts';
export type { FakeContract, TestPartners } from './partners.ts';
export type { ProgramAnswer, ProgramCall, TestPrograms } from './programs.ts';
export type { TestClock, TestSchedules } from './schedules.ts';
export type { TestServing } from './serving.ts';
export type { TestSocket } from './socket.ts';
export type { TestTask, TestTasks } from './tasks.ts';
export type { LogLine } from './world.ts';
