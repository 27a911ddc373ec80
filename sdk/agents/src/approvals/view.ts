/** Approvals as clients see them. */
import { type Effect, joi, type Plan } from '@portico/sdk';

import type { ToolArguments } from '../calls.ts';
import type { ApprovalRow, ApprovalState } from './table.ts';

/** An approval on the wire; a plugin adds its own fields. Times are ISO 8601. */
export interface ApprovalView {
    readonly id: number;
    readonly state: ApprovalState;
    readonly route: string;
    /** Secrets read `[secret]`. */
    readonly arguments: ToolArguments;
    /** What an approval must name: SHA-256 of the canonical call. */
    readonly hash: string;
    readonly effect: Effect;
    readonly dangerous: boolean;
    readonly plan: Plan;
    readonly username: string;
    readonly tokenId: number | null;
    readonly createdAt: string;
    readonly expiresAt: string;
    readonly decidedBy: string | null;
    readonly reason: string | null;
    /** How the call ended; null before. */
    readonly code: number | null;
}

/** What a client sees of a row. */
export function approvalView(row: ApprovalRow): ApprovalView {
    const { id, state, route, hash, effect, dangerous, username, tokenId, decidedBy, reason, code } = row;
    return {
        id,
        state,
        route,
        arguments: JSON.parse(row.shown) as ToolArguments,
        hash,
        effect,
        dangerous,
        plan: JSON.parse(row.plan) as Plan,
        username,
        tokenId,
        createdAt: new Date(row.createdAt).toISOString(),
        expiresAt: new Date(row.expiresAt).toISOString(),
        decidedBy,
        reason,
        code
    };
}

const any = joi.any();
const open = joi.object({}).unknown();

/** The schema of a plan. */
export const planSchema = joi.typed<Plan>(
    joi
        .object({
            method: joi.string().required().label('Method'),
            path: joi.string().required().label('Path'),
            permission: joi.string().allow(null).required().label('Permission'),
            etag: joi.string().allow(null).required().label('Version'),
            before: any.required().label('Before'),
            after: any.required().label('After'),
            changes: joi
                .array()
                .items(
                    joi.object({
                        path: joi.string().allow('').required().label('Field'),
                        before: any.label('Before'),
                        after: any.label('After')
                    })
                )
                .required()
                .label('Changes'),
            validated: joi
                .object({
                    code: joi.number().integer().required().label('Code'),
                    message: joi.string().allow('').required().label('Message')
                })
                .allow(null)
                .required()
                .label('Checked'),
            undo: open.allow(null).required().label('Undo')
        })
        .label('Plan')
);

/** The fields of an approval, for `joi.object({ ...approvalFields, tool: … })`. */
export const approvalFields = {
    id: joi.number().integer().required().label('Number'),
    state: joi
        .choice({
            pending: 'Waits for a decision',
            approved: 'Approved',
            executed: 'Executed',
            failed: 'Failed',
            rejected: 'Rejected',
            expired: 'Expired'
        })
        .required()
        .label('State')
        .meta({
            ui: {
                column: 2,
                tones: {
                    pending: 'warning',
                    approved: 'busy',
                    executed: 'good',
                    failed: 'bad',
                    rejected: 'neutral',
                    expired: 'neutral'
                }
            }
        }),
    route: joi
        .string()
        .required()
        .label('Route')
        .meta({ ui: { column: 1 } }),
    arguments: joi.typed<ToolArguments>(open).required().label('Arguments'),
    hash: joi
        .string()
        .required()
        .label('Hash')
        .meta({ ui: { column: false } }),
    effect: joi
        .choice({ read: 'Reads', write: 'Changes', destructive: 'Removes' })
        .required()
        .label('Effect'),
    dangerous: joi.boolean().required().label('Dangerous'),
    plan: planSchema.required(),
    username: joi
        .string()
        .required()
        .label('User')
        .meta({ ui: { column: 3 } }),
    tokenId: joi.number().integer().allow(null).required().label('API token'),
    createdAt: joi.string().isoDate().required().label('Asked'),
    expiresAt: joi.string().isoDate().required().label('Expires'),
    decidedBy: joi.string().allow(null).required().label('Decided by'),
    reason: joi.string().allow(null, '').required().label('Reason'),
    code: joi.number().integer().allow(null).required().label('Result')
};
