/** What plugins for agents have in common: the panel's routes as tools, and writes that a person approves once. */
export { agentErrors } from './errors.ts';
export { toolHints, toolName, toolSchema } from './tools.ts';
export type { ToolHints } from './tools.ts';
export { argumentsOf, callHash, maskArguments } from './calls.ts';
export type { ToolArguments } from './calls.ts';
export { approvalsTable } from './approvals/table.ts';
export type { ApprovalRow, ApprovalsTable, ApprovalState } from './approvals/table.ts';
export { approvalFields, approvalView, planSchema } from './approvals/view.ts';
export type { ApprovalView } from './approvals/view.ts';
export { Approvals } from './approvals/approvals.ts';
export type {
    ApprovalFilter,
    ApprovalRequest,
    ApprovalsContext,
    ApprovalsOptions,
    Execution
} from './approvals/approvals.ts';
