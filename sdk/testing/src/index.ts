/** The kit for a plugin's tests: the panel's own plugin runtime, with doubles at its outer ports. Works with any test runner. */
export type { TestAccessLog } from './access-log.ts';
export type { TestAnswer } from './answer.ts';
export type { PanelRoute, TestApi } from './api.ts';
export type { AskOptions, Body, EventsOptions, TestClient } from './client.ts';
export type { Span, TestClock, TestSchedules } from './clock.ts';
export type { Finding, Rule } from './conformance/finding.ts';
export type { ConformanceRequest } from './conformance/requests.ts';
export { type ConformanceOptions, type ConformanceReport, runConformance } from './conformance/run.ts';
export { TestTimeout } from './deadline.ts';
export type { FaultOptions, FaultPoint, TestFaults } from './faults.ts';
export type { TestHooks, TestTapFailure } from './hooks.ts';
export { createTestHost, type TestHost } from './host.ts';
export type { TestHosts } from './hosts.ts';
export type { LogLine } from './log.ts';
export type { GivenMandate, TestMandates } from './mandates.ts';
export type { NetworkAnswer, NetworkTarget, TestNetwork } from './network.ts';
export {
    type Boundary,
    type BoundaryPlugin,
    LeakError,
    PluginFailure,
    type TestHostOptions,
    type TestTiming
} from './options.ts';
export { readTestPackage, type TestPackage } from './package.ts';
export type { AuditRecord, TestPanel } from './panel.ts';
export type { TestPanelService } from './panel-service.ts';
export type { FakeContract, TestPartners } from './partners.ts';
export type { Who } from './people.ts';
export type { ProgramAnswer, ProgramCall, TestPrograms } from './programs.ts';
export type { TestRuntime } from './runtime.ts';
export type { TestServices } from './services.ts';
export type { TestSocket } from './socket.ts';
export type { TestTask, TestTasks } from './tasks.ts';
