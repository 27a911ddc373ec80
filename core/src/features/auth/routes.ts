/** `/api/auth`: logging in and out, and one's own account. */
import { joi } from '@portico/sdk';

import { json, type Route } from '../../server/http/route.ts';
import type { Auth } from './auth.ts';
import { oauthRoutes } from './oauth/routes.ts';
import {
    challenge,
    confirmation,
    confirmed,
    consoleToken,
    createdToken,
    credentials,
    enrolment,
    enrolmentRequest,
    freshness,
    idParams,
    login,
    me,
    newToken,
    passwordChange,
    session,
    stepUp,
    ticket,
    ticketRequest,
    tokenPair,
    tokenView,
    totpRemoval
} from './schema.ts';

const nothing = joi.valid(null);
/** Answers before the password is changed, and before a second factor is set up. */
const always = ['password', 'totp'] as const;

/** Every route below `/api/auth`, and the metadata of the OAuth server. Those that compare a password or a code put themselves on record, failures unmerged. */
export function authRoutes(auth: Auth): Route[] {
    return [
        ...entrance(auth),
        ...ownAccount(auth),
        ...secondFactor(auth),
        ...sessions(auth),
        ...tokens(auth),
        ...oauthRoutes(auth.oauth)
    ];
}

function entrance({ login: service }: Auth): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/auth/login',
            id: 'auth.challenge',
            summary: 'Get a proof-of-work challenge to log in with',
            access: { public: 'The caller is not logged in yet; the challenge is what a login must solve' },
            returns: challenge,
            handler: (call) => service.challenge(call)
        }),
        json({
            method: 'POST',
            path: '/api/auth/login',
            id: 'auth.login',
            fails: [
                'CREDENTIALS_INVALID',
                'CHALLENGE_REQUIRED',
                'CHALLENGE_INVALID',
                'TOTP_REQUIRED',
                'TOTP_INVALID'
            ],
            summary: 'Log in',
            secret: true,
            audit: false,
            access: {
                public: 'The caller is not logged in yet; proof of work, password and second factor are asked for'
            },
            validate: { payload: credentials },
            returns: login,
            handler: async (call) => service.login(call, call.payload)
        }),
        json({
            method: 'POST',
            path: '/api/auth/refresh',
            id: 'auth.refresh',
            fails: ['UNAUTHENTICATED', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED'],
            summary: 'Exchange the refresh token for a new pair',
            secret: true,
            audit: false,
            description:
                'The bearer is the refresh token. It is spent by this. For 30 s the same token gets the same pair again, unless the new one was used; after that it ends its session.',
            access: { public: 'The bearer is a refresh token, which opens nothing else and is checked here' },
            returns: tokenPair,
            handler: (call) => service.refresh(call, call.bearer)
        })
    ];
}

const own = { access: 'authenticated', ownAccount: true, sessionOnly: true, audit: false } as const;

function secondFactor(auth: Auth): Route[] {
    return [
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/totp',
            id: 'auth.totp.enrol',
            fails: ['CREDENTIALS_INVALID'],
            summary: 'Get a secret for a second factor',
            whileLocked: ['totp'],
            secret: true,
            validate: { payload: enrolmentRequest },
            returns: enrolment,
            handler: (call) => auth.ownAccount.enrol(call, call.payload.password)
        }),
        json({
            ...own,
            method: 'PUT',
            path: '/api/auth/totp',
            id: 'auth.totp.confirm',
            fails: ['NOT_FOUND', 'TOTP_REQUIRED', 'TOTP_INVALID'],
            summary: 'Switch the second factor on',
            whileLocked: ['totp'],
            secret: true,
            validate: { payload: confirmation },
            returns: confirmed,
            handler: (call) => auth.ownAccount.confirm(call, call.payload.code, call.payload.currentCode)
        }),
        json({
            ...own,
            method: 'DELETE',
            path: '/api/auth/totp',
            id: 'auth.totp.remove',
            fails: ['NOT_FOUND', 'CREDENTIALS_INVALID', 'TOTP_INVALID'],
            summary: 'Switch the second factor off',
            whileLocked: ['totp'],
            validate: { payload: totpRemoval },
            returns: nothing,
            handler: (call) => auth.ownAccount.disable(call, call.payload.password, call.payload.code)
        })
    ];
}

function ownAccount(auth: Auth): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/auth/me',
            id: 'auth.me',
            summary: 'See who one is and what one may',
            access: 'authenticated',
            whileLocked: always,
            returns: me,
            handler: (call) => auth.me(call)
        }),
        json({
            ...own,
            method: 'PUT',
            path: '/api/auth/password',
            id: 'auth.password',
            fails: ['CREDENTIALS_INVALID'],
            summary: "Change one's password",
            whileLocked: always,
            validate: { payload: passwordChange },
            returns: nothing,
            handler: (call) =>
                auth.ownAccount.changePassword(call, call.payload.currentPassword, call.payload.newPassword)
        }),
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/step-up',
            id: 'auth.stepUp',
            fails: ['CREDENTIALS_INVALID', 'TOTP_INVALID'],
            summary: 'Prove again that it is oneself',
            validate: { payload: stepUp },
            returns: freshness,
            handler: (call) => auth.ownAccount.stepUp(call, call.payload)
        }),
        json({
            method: 'POST',
            path: '/api/auth/tickets',
            id: 'auth.ticket',
            fails: ['FORBIDDEN', 'STEP_UP_REQUIRED', 'NOT_FOUND'],
            summary: 'Get a one-time ticket for a GET',
            effect: 'read',
            secret: true,
            access: 'authenticated',
            ownAccount: true,
            description:
                'For a WebSocket, an event stream or a download in a browser: within 30 seconds, add it to exactly this path as the query parameter `ticket`.',
            validate: { payload: ticketRequest },
            returns: ticket,
            handler: (call) => auth.issueTicket(call, call.payload.path)
        })
    ];
}

function sessions(auth: Auth): Route[] {
    const own = { access: 'authenticated', ownAccount: true } as const;
    return [
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/logout',
            id: 'auth.logout',
            summary: 'End this session',
            sessionOnly: true,
            whileLocked: always,
            returns: nothing,
            handler: (call) => auth.logout(call)
        }),
        json({
            ...own,
            method: 'GET',
            path: '/api/auth/sessions',
            id: 'auth.sessions.list',
            summary: "List one's sessions",
            returns: joi.array().items(session),
            handler: (call) => auth.listSessions(call)
        }),
        json({
            ...own,
            method: 'DELETE',
            path: '/api/auth/sessions',
            id: 'auth.sessions.endOthers',
            summary: "End one's other sessions",
            sessionOnly: true,
            returns: nothing,
            handler: (call) => auth.endOtherSessions(call)
        }),
        json({
            ...own,
            method: 'DELETE',
            path: '/api/auth/sessions/{id}',
            id: 'auth.sessions.end',
            summary: "End one of one's sessions",
            sessionOnly: true,
            validate: { params: idParams },
            returns: nothing,
            handler: (call) => auth.endSession(call, call.params.id)
        })
    ];
}

function tokens(auth: Auth): Route[] {
    const { apiTokens } = auth;
    const own = { access: 'authenticated', ownAccount: true } as const;
    return [
        json({
            ...own,
            method: 'GET',
            path: '/api/auth/tokens',
            id: 'auth.tokens.list',
            summary:
                "List one's API tokens, the mandates that one gave to plugins, and the grants that one gave to OAuth clients",
            returns: joi.array().items(tokenView),
            handler: ({ actor }) => apiTokens.list(actor.id ?? 0)
        }),
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/tokens',
            id: 'auth.tokens.create',
            fails: ['CONFLICT'],
            summary: 'Create an API token',
            sessionOnly: true,
            stepUp: true,
            secret: true,
            validate: { payload: newToken },
            returns: createdToken,
            handler: async (call) => apiTokens.create(call, call.actor.id ?? 0, call.payload)
        }),
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/console/tokens',
            id: 'auth.console.tokens.create',
            fails: ['FORBIDDEN', 'NOT_FOUND', 'CONFLICT'],
            answers: [201],
            summary: 'Create an API token for any user, from the command line',
            sessionOnly: true,
            stepUp: true,
            secret: true,
            description:
                "Only the command line on the panel's own machine can call it; all others are refused.",
            validate: { payload: consoleToken },
            returns: createdToken,
            handler: async (call) => {
                const { username, ...input } = call.payload;
                return auth.createToken(call, username, input);
            }
        }),
        json({
            ...own,
            method: 'GET',
            path: '/api/auth/tokens/{id}',
            id: 'auth.tokens.read',
            summary: "Read one of one's API tokens, mandates or grants",
            validate: { params: idParams },
            returns: tokenView,
            handler: ({ actor, params }) => apiTokens.get(actor.id ?? 0, params.id)
        }),
        json({
            ...own,
            method: 'DELETE',
            path: '/api/auth/tokens/{id}',
            id: 'auth.tokens.revoke',
            summary: "Revoke one of one's API tokens, mandates or grants",
            sessionOnly: true,
            validate: { params: idParams },
            returns: nothing,
            handler: async (call) => {
                await apiTokens.revoke(call, call.actor.id ?? 0, call.params.id);
                return null;
            }
        })
    ];
}
