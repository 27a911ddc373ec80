/** Drives that fail, arrays that lack disks, and sensors beyond what the hardware bears. */
import type { Drive } from '../hardware/drives.ts';
import type { RaidArray } from '../sampling/sources/raids.ts';
import type { Sensor } from '../sampling/sources/sensors.ts';
import type { Finding } from './finding.ts';

/** Finds drives that say that they fail, and those that soon may. */
export function findDriveProblems(drives: readonly Drive[]): Finding[] {
    return drives
        .filter(({ state }) => state === 'failed' || state === 'warning')
        .map(({ name, model, state, message }) => ({
            kind: 'drive',
            severity: state === 'failed' ? 'critical' : 'warning',
            subject: model === null ? name : `${name} (${model})`,
            message: message ?? 'It is not well',
            since: null,
            remedy: 'Save its data and replace it'
        }));
}

/** Finds arrays of which disks are missing. */
export function findRaidProblems(raids: readonly RaidArray[]): Finding[] {
    return raids
        .filter(({ state }) => state !== 'ok' && state !== 'inactive')
        .map(({ name, state, wanted, working, failedMembers, action, progress }) => ({
            kind: 'raid',
            severity: state === 'rebuilding' ? 'warning' : 'critical',
            subject: name,
            message:
                state === 'rebuilding'
                    ? `It is being rebuilt (${action}${progress === null ? '' : `, ${progress} %`})`
                    : [
                          state === 'failed' ? 'It has failed' : 'It has less redundancy than it should',
                          ...(wanted === null ? [] : [`${working ?? 0} of ${wanted} disks work`]),
                          ...(failedMembers.length === 0 ? [] : [`failed: ${failedMembers.join(', ')}`])
                      ].join('; '),
            since: null,
            remedy:
                state === 'rebuilding'
                    ? null
                    : `Replace the disk and add it: mdadm --manage /dev/${name} --add <partition>`
        }));
}

/** Finds sensors that are beyond the limit that their chip calls critical. */
export function findSensorProblems(sensors: readonly Sensor[]): Finding[] {
    return sensors
        .filter(({ state }) => state === 'critical')
        .map(({ name, value, criticalAt }) => ({
            kind: 'sensor',
            severity: 'critical',
            subject: name,
            message: `${value} °C; from ${criticalAt} °C on the hardware is in danger`,
            since: null,
            remedy: 'Check the fans and the air around the machine'
        }));
}
