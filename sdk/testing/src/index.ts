/** The kit for a plugin's tests: the panel's own plugin runtime, with doubles at its outer ports. Works with any test runner. */
export type { TestAccessLog } from './doubles/access-log.ts';
export type { TestAnswer } from './client/answer.ts';
export type { PanelRoute, TestApi } from './api.ts';
export type { AskOptions, Body, EventsOptions, TestClient } from './client/client.ts';
export type { Span, TestClock, TestSchedules } from './doubles/clock.ts';
export type { Finding, Rule } from './conformance/finding.ts';
export type { ConformanceRequest } from './conformance/requests.ts';
export { type ConformanceOptions, type ConformanceReport, runConformance } from './conformance/run.ts';
export { TestTimeout } from './deadline.ts';
export type { FaultOptions, FaultPoint, TestFaults } from './faults.ts';
export type { TestHooks, TestTapFailure } from './hooks.ts';
export { createTestHost, type TestHost } from './panel/host.ts';
export type { TestHosts } from './doubles/hosts.ts';
export type { LogLine } from './log.ts';
export type { GivenMandate, TestMandates } from './doubles/mandates.ts';
export type { NetworkAnswer, NetworkTarget, TestNetwork } from './doubles/machine/network.ts';
export {
    type Boundary,
    type BoundaryPlugin,
    LeakError,
    PluginFailure,
    type TestHostOptions,
    type TestTiming
} from './panel/options.ts';
export { readTestPackage, type TestPackage } from './panel/package.ts';
export type { AuditRecord, TestPanel } from './panel/panel.ts';
export type { TestPanelService } from './doubles/panel-service.ts';
export type { FakeContract, TestPartners } from './doubles/partners.ts';
export { openTestPage, type TestPage, type TestPageOptions } from './page/page.ts';
export type { Who } from './doubles/people.ts';
export type { ProgramAnswer, ProgramCall, TestPrograms } from './doubles/machine/programs.ts';
export type { TestRuntime } from './panel/runtime.ts';
export type { TestServices } from './doubles/machine/services.ts';
export type { TestSocket } from './client/socket.ts';
export type { TestTask, TestTasks } from './tasks.ts';
