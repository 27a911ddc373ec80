/** What people are told about an alert. */
import type { Notification } from '@portico/sdk';

import type { AlertRow } from '../entities.ts';
import { nameSeries } from '../sampling/metrics.ts';

/** Describes an alert as it is now: that it fires, or that it is over. */
export function describeAlert(alert: AlertRow): Notification {
    const { name, instance, severity, operator, threshold, endedAt, firedAt } = alert;
    const series = toOneLine(nameSeries(alert.metric, instance));
    const title = toOneLine(instance === '' ? name : `${name}: ${instance}`);
    const common = {
        data: { alertId: alert.id, ruleId: alert.rule, metric: alert.metric, instance: instance || null },
        ...(alert.channels == null ? {} : { channels: alert.channels })
    };
    if (endedAt === null || endedAt === undefined) {
        return {
            event: 'alert-fired',
            ...common,
            severity: severity === 'critical' ? 'error' : severity === 'warning' ? 'warning' : 'info',
            title,
            text:
                operator === 'absent'
                    ? `${series} has no value since ${new Date(firedAt).toISOString()}`
                    : `${series} is ${round(alert.value)} (${operator} ${threshold}) since ${new Date(firedAt).toISOString()}`
        };
    }
    const minutes = Math.round((endedAt - firedAt) / 60_000);
    return {
        event: 'alert-ended',
        ...common,
        severity: 'info',
        title: `Over: ${title}`,
        text:
            alert.endedBy === 'gone'
                ? `${series} has not been measured for an hour`
                : operator === 'absent'
                  ? `${series} has a value again, after ${minutes} min`
                  : `${series} is ${round(alert.last)}, after ${minutes} min`
    };
}

/** A mount point may contain any character, but a title is one line. */
function toOneLine(text: string): string {
    return text.replace(/\p{Cc}+/gu, ' ');
}

function round(value: number): string {
    return String(Math.round(value * 100) / 100);
}
