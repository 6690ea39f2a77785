// Package newapp makes an application that embeds Daybook: daybook init app. The folder app has it.
package newapp
