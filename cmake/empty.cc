// SPDX-License-Identifier: Apache-2.0
// The only source of targets that exist for their headers' or usage requirements' sake.
