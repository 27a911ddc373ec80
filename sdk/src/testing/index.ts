/** The kit for a plugin's tests: a panel in memory with fakes for every door, faults on demand, and the real boundary. Works with any test runner. */
export type { Who } from './actors.ts';
export type { TestAnswer } from './answer.ts';
export type { PanelRoute } from './api.ts';
export type { AskOptions, Body, TestClient } from './client.ts';
export type { Finding, Rule } from './conformance/finding.ts';
export type { ConformanceRequest } from './conformance/requests.ts';
export { runConformance, type ConformanceOptions, type ConformanceReport } from './conformance/run.ts';
export type {
    TestApi,
    TestFaults,
    TestHooks,
    TestNetwork,
    TestPartners,
    TestPrograms,
    TestSchedules,
    TestServing,
    TestTasks
} from './controls.ts';
export type { Door, FaultOptions } from './faults.ts';
export type { AuditRecord } from './front.ts';
export { PluginFailure, type Boundary, type StopReport, type TestTiming } from './generation.ts';
export type { TestTapFailure } from './hooks.ts';
export { createTestHost, LeakError, type TestHost, type TestHostOptions } from './host.ts';
export { readTestPackage, type TestManifest, type TestPackage } from './manifest.ts';
export type { NetworkAnswer, NetworkTarget } from './network.ts';
export type { FakeContract } from './partners.ts';
export type { ProgramAnswer, ProgramCall } from './programs.ts';
export type { TestClock } from './schedules.ts';
export type { TestSocket } from './socket.ts';
export type { TestTask } from './tasks.ts';
export type { LogLine } from './world.ts';
